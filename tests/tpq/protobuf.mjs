// protobuf.mjs - the two wire types that the trace processor's RPC speaks: varints and byte strings.

export function varint(value) {
	const bytes = [];
	for (; value > 127; value = Math.floor(value / 128))
		bytes.push((value % 128) | 128);
	bytes.push(value);
	return Buffer.from(bytes);
}

export const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
export const bytes = (field, data) => Buffer.concat([varint(field * 8 + 2), varint(data.length), data]);
export const string = (field, text) => bytes(field, Buffer.from(text, 'utf8'));

export class Reader {
	constructor(buffer) {
		this.buffer = buffer;
		this.at = 0;
	}

	get more() {
		return this.at < this.buffer.length;
	}

	// A Number where that is exact, else a signed BigInt.
	varint() {
		let value = 0n;
		let shift = 0n;
		let byte;
		do {
			byte = this.buffer[this.at++];
			value |= BigInt(byte & 127) << shift;
			shift += 7n;
		} while (byte & 128);
		value = BigInt.asIntN(64, value);
		return Number.isSafeInteger(Number(value)) ? Number(value) : value;
	}

	take(length) {
		this.at += length;
		return this.buffer.subarray(this.at - length, this.at);
	}

	// -> { number, value }: value is a number or the bytes of the field
	field() {
		const tag = this.varint();
		const readers = {
			0: () => this.varint(),
			1: () => this.take(8),
			2: () => this.take(this.varint()),
			5: () => this.take(4),
		};
		if (!readers[tag & 7])
			throw new Error(`wire type ${tag & 7} in a reply`);
		return { number: tag >>> 3, value: readers[tag & 7]() };
	}

	*fields() {
		while (this.more)
			yield this.field();
	}

	*varints() {
		while (this.more)
			yield this.varint();
	}
}

export function find(buffer, number) {
	for (const field of new Reader(buffer).fields())
		if (field.number === number)
			return field.value;
	return undefined;
}
