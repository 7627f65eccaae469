// engine.mjs - Perfetto's trace processor (WebAssembly) inside Node.
//
//   file --load()--> [append, append, ..., end of file] --> engine --query(sql)--> rows
//
// The engine was built for a browser's worker: it fetches its code with a synchronous XMLHttpRequest, takes
// a message port, and answers protobuf messages on it before postMessage returns. Those few things of a
// worker are given to it here.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { Reader, bytes, find, number, string } from './protobuf.mjs';

const METHOD = { append: 1, finish: 2, query: 3, reset: 11 };
const REQUEST = { append: 101, query: 103 };
const REPLY = { append: 201, query: 203, finish: 212 };
const FATAL = 5;
const READ_BYTES = 16 << 20;

function givenToWorker(folder) {
	class Request {
		open(_method, url) {
			this.file = path.join(folder, path.basename(url));
		}
		send() {
			this.response = new Uint8Array(fs.readFileSync(this.file)).buffer;
		}
	}
	return { self: globalThis, WorkerGlobalScope: function () {}, location: { href: 'file:///' }, XMLHttpRequest: Request };
}

// The glue tries a tiny module to learn whether 64-bit memory works and would then ask for another file.
function without64BitMemory(run) {
	const Module = WebAssembly.Module;
	WebAssembly.Module = function (code) {
		if (code.byteLength < 64)
			throw new Error('no 64-bit memory');
		return new Module(code);
	};
	try {
		run();
	} finally {
		WebAssembly.Module = Module;
	}
}

function cellsOf(batch) {
	const kinds = find(batch, 1) ?? [];
	const store = { 2: [], 3: [], 4: [], 5: [] };
	for (const { number: field, value } of new Reader(batch).fields()) {
		if (field === 2)
			store[2].push(...new Reader(value).varints());
		else if (field === 3)
			for (let at = 0; at < value.length; at += 8)
				store[3].push(value.readDoubleLE(at));
		else if (field === 4)
			store[5].push(value.toString('hex'));
		else if (field === 5)
			store[4] = value.toString('utf8').split('\0');
	}
	const next = { 2: 0, 3: 0, 4: 0, 5: 0 };
	return Array.from(kinds, kind => (kind in store ? store[kind][next[kind]++] : null));
}

export class Engine {
	#port;
	#replies = [];
	#log = [];
	#sequence = 0;

	static async start(folder) {
		const engine = new Engine();
		for (const [name, value] of Object.entries(givenToWorker(folder)))
			Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
		console.log = console.warn = console.error = (...words) => engine.#keep(words.join(' '));
		const glue = path.join(folder, 'engine_bundle.node.js');
		without64BitMemory(() => vm.runInThisContext(fs.readFileSync(glue, 'utf8'), { filename: glue }));
		await new Promise(done => setTimeout(done, 0));
		engine.#port = { postMessage: data => engine.#replies.push(Buffer.from(data)) };
		globalThis.onmessage({ data: engine.#port });
		return engine;
	}

	#keep(line) {
		this.#log = [...this.#log.slice(-20), line];
	}

	#call(method, argument = Buffer.alloc(0)) {
		const message = Buffer.concat([number(1, ++this.#sequence), number(2, method), argument]);
		this.#replies = [];
		try {
			this.#port.onmessage({ data: new Uint8Array(bytes(1, message)) });
		} catch (error) {
			throw new Error(`trace processor crashed: ${error.message}\n${this.#log.join('\n')}`);
		}
		const replies = [...new Reader(Buffer.concat(this.#replies)).fields()].map(field => field.value);
		for (const reply of replies) {
			const fatal = find(reply, FATAL);
			if (fatal)
				throw new Error(fatal.toString('utf8'));
		}
		return replies;
	}

	#check(replies, kind, errorField) {
		for (const reply of replies) {
			const error = find(find(reply, kind) ?? Buffer.alloc(0), errorField);
			if (error?.length)
				throw new Error(error.toString('utf8'));
		}
	}

	load(file) {
		this.#call(METHOD.reset);
		const trace = fs.readFileSync(file);
		if (!trace.length)
			throw new Error('empty file');
		for (let at = 0; at < trace.length; at += READ_BYTES)
			this.#check(this.#call(METHOD.append, bytes(REQUEST.append, trace.subarray(at, at + READ_BYTES))), REPLY.append, 2);
		this.#check(this.#call(METHOD.finish), REPLY.finish, 1);
	}

	// -> [{ column: value, ... }, ...]
	query(sql) {
		const columns = [];
		let cells = [];
		for (const reply of this.#call(METHOD.query, bytes(REQUEST.query, string(1, sql)))) {
			for (const { number: field, value } of new Reader(find(reply, REPLY.query) ?? Buffer.alloc(0)).fields()) {
				if (field === 1)
					columns.push(value.toString('utf8'));
				else if (field === 2 && value.length)
					throw new Error(`SQL: ${value.toString('utf8')}`);
				else if (field === 3)
					cells = cells.concat(cellsOf(value));
			}
		}
		const rows = [];
		for (let at = 0; at < cells.length; at += columns.length)
			rows.push(Object.fromEntries(columns.map((name, i) => [name, cells[at + i]])));
		return rows;
	}
}
