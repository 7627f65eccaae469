// tpq.mjs - ask Perfetto's trace processor about a trace.
//
//   tpq [--strict] TRACE [SQL...]      one line of JSON (an array of rows) for each SQL
//   tpq --serve                        requests {"trace", "sql": [...]} on stdin, one a line; for each an answer
//                                      {"error"} or {"faults": [...], "results": [[row...]...]} on stdout
//
// Exit: 0 good, 1 the trace or the SQL is bad, 2 usage, 3 --strict found faults of the writer.
import path from 'node:path';
import readline from 'node:readline';
import { Engine } from './engine.mjs';

// What the engine itself calls an error or a loss, and things that it merely notes but that no correct
// writer causes.
const NOTED = [
	'flow_end_without_start', 'flow_step_without_start', 'interned_data_skipped_incremental_state_invalid',
	'interned_data_tokenizer_errors', 'packet_skipped_seq_needs_incremental_state_invalid',
	'tokenizer_skipped_packets', 'track_event_parser_errors', 'track_event_tokenizer_errors',
	'track_hierarchy_missing_uuid',
];
const FAULTS = `select name, idx, severity, value from stats
	where value > 0 and (severity in ('error', 'data_loss') or name in (${NOTED.map(name => `'${name}'`)}))`;

const json = value => JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? String(v) : v));

async function serve(engine) {
	for await (const line of readline.createInterface({ input: process.stdin })) {
		let answer;
		try {
			const { trace, sql } = JSON.parse(line);
			engine.load(trace);
			answer = { faults: engine.query(FAULTS), results: sql.map(text => engine.query(text)) };
		} catch (error) {
			answer = { error: error.message };
		}
		process.stdout.write(json(answer) + '\n');
	}
}

function once(engine, strict, trace, queries) {
	engine.load(trace);
	for (const sql of queries)
		process.stdout.write(json(engine.query(sql)) + '\n');
	const faults = strict ? engine.query(FAULTS) : [];
	for (const fault of faults)
		process.stderr.write(`tpq: ${json(fault)}\n`);
	return faults.length ? 3 : 0;
}

const [folder, ...words] = process.argv.slice(2);
const options = words.filter(word => word.startsWith('--'));
const [trace, ...queries] = words.filter(word => !word.startsWith('--'));
if (options.some(option => !['--strict', '--serve'].includes(option)) || (!trace && !options.includes('--serve'))) {
	process.stderr.write('usage: tpq [--strict] TRACE [SQL...] | tpq --serve\n');
	process.exit(2);
}
try {
	const engine = await Engine.start(path.resolve(folder));
	if (options.includes('--serve'))
		await serve(engine);
	else
		process.exitCode = once(engine, options.includes('--strict'), trace, queries);
} catch (error) {
	process.stderr.write(`tpq: ${error.message}\n`);
	process.exitCode = 1;
}
