/*
 * summary_json_probes.c - probed calls for programs, and libraries of which none could be seen.
 */
#include "summary.h"
#include "util/json.h"

static double per_second(double amount, u64 ns)
{
	return ns ? amount * 1e9 / (double)ns : 0;
}

static void rates(struct json *j, const struct probe_sum *p)
{
	json_open(j, "rates", '[');
	for (u32 i = 0; i < p->rates; i++) {
		json_open(j, NULL, '{');
		json_string(j, "unit", p->rate[i].unit);
		json_real(j, "total", p->rate[i].total);
		json_real(j, "per_s", per_second(p->rate[i].total, p->total_ns));
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void probe(struct json *j, const struct probe_sum *p)
{
	json_open(j, NULL, '{');
	json_string(j, "name", p->name);
	json_string(j, "function", p->function);
	json_string(j, "role", p->role);
	json_string(j, "preset", p->preset);
	json_count(j, "calls", p->calls);
	json_count(j, "failed", p->failed);
	json_count(j, "unwound", p->unwound);
	json_count(j, "total_ns", p->total_ns);
	json_count(j, "self_ns", p->self_ns);
	json_count(j, "avg_ns", p->calls ? p->total_ns / p->calls : 0);
	json_count(j, "min_ns", p->min_ns);
	json_count(j, "max_ns", p->max_ns);
	json_count(j, "bytes", p->bytes);
	json_real(j, "flops", p->flops);
	json_real(j, "gflops", summary_per_ns(p->paced_flops));
	rates(j, p);
	json_close(j, '}');
}

static bool has_tokens(const struct probe_sum *p)
{
	return p->tokens.steps || p->tokens.batches;
}

static void tokens(struct json *j, const struct probe_sum *p)
{
	const struct token_sum *t = &p->tokens;

	json_open(j, NULL, '{');
	json_string(j, "name", p->name);
	json_string(j, "preset", p->preset);
	json_count(j, "steps", t->steps);
	json_count(j, "step_ns", t->step_ns);
	json_count(j, "loop_ns", t->loop_ns);
	json_real(j, "per_s", per_second((double)t->steps, t->loop_ns));
	json_count(j, "batches", t->batches);
	json_count(j, "batch_tokens", t->batch_tokens);
	json_count(j, "batch_ns", t->batch_ns);
	json_real(j, "batch_per_s", per_second((double)t->batch_tokens, t->batch_ns));
	json_close(j, '}');
}

void summary_json_probes(struct json *j, const struct session *s)
{
	json_open(j, "probes", '[');
	for (u32 i = 0; i < s->probes; i++)
		probe(j, &s->probe[i]);
	json_close(j, ']');
	json_count(j, "probe_calls_too_short", s->short_probes);
	json_open(j, "tokens", '[');
	for (u32 i = 0; i < s->probes; i++)
		if (has_tokens(&s->probe[i]))
			tokens(j, &s->probe[i]);
	json_close(j, ']');
	json_open(j, "unseen_libraries", '[');
	for (u32 i = 0; i < s->unseens; i++) {
		json_open(j, NULL, '{');
		json_string(j, "library", s->unseen[i].library);
		json_string(j, "path", s->unseen[i].path);
		json_close(j, '}');
	}
	json_close(j, ']');
}
