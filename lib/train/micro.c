/* The micro-batches that are here, and the passes that hold what they compute. */
#include "train/replica_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct micro *micro_new(struct hps_replica *r, uint64_t step, uint32_t mb, struct hps_err *err)
{
	struct micro *m = hps_calloc(1, sizeof *m, err), **at = &r->micro;

	if (!m)
		return NULL;
	m->step = step;
	m->mb = mb;
	while (*at && ((*at)->step < step || ((*at)->step == step && (*at)->mb < mb)))
		at = &(*at)->next;
	m->next = *at;
	*at = m;
	r->n_micro++;
	return m;
}

struct micro *micro_find(const struct hps_replica *r, uint64_t step, uint32_t mb)
{
	for (struct micro *m = r->micro; m; m = m->next)
		if (m->step == step && m->mb == mb)
			return m;
	return NULL;
}

/* Passes at rest have a place each, made with the pass, so that putting one back cannot fail. */
struct hps_pass *pass_get(struct hps_replica *r, struct hps_err *err)
{
	struct hps_pass *p;

	if (r->n_spare)
		return r->spare[--r->n_spare];
	if (r->n_passes == r->cap_spare) {
		size_t cap = r->cap_spare ? 2 * r->cap_spare : 4;
		void *q = r->spare;

		if (hps_realloc(&q, cap, sizeof *r->spare, err) != HPS_OK)
			return NULL;
		r->spare = q;
		r->cap_spare = cap;
	}
	if (hps_pass_new(r->program, &p, err) != HPS_OK)
		return NULL;
	r->n_passes++;
	return p;
}

void micro_release(struct hps_replica *r, struct micro *m)
{
	struct micro **at = &r->micro;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	r->n_micro--;
	if (m->pass)
		r->spare[r->n_spare++] = m->pass;
	weights_drop(m->w);
	if (m->batch)
		r->o.give_back(r->o.ctx, m->batch);
	hps_msg_release(&m->msg);
	hps_msg_release(&m->grads);
	free(m);
}

void micro_release_all(struct hps_replica *r)
{
	while (r->micro)
		micro_release(r, r->micro);
	for (size_t i = 0; i < r->n_spare; i++)
		hps_pass_free(r->spare[i]);
	free(r->spare);
}

void micro_place(const struct hps_replica *r, const struct micro *m, char *out, size_t size)
{
	uint64_t line = m->place & (((uint64_t)1 << 48) - 1), operand = m->place >> 48;
	const char *name = operand < r->o.n_operands ? r->o.operand[operand] : NULL;
	char number[32];

	if (!r->o.n_operands || (name && !strcmp(name, "-"))) {
		name = "standard input";
	} else if (!name) {
		snprintf(number, sizeof number, "data file %llu", (unsigned long long)operand + 1);
		name = number;
	}
	if (!line)
		snprintf(out, size, "no rows");
	else if (m->lines == 0)
		snprintf(out, size, "%s: from line %llu on", name, (unsigned long long)line);
	else
		snprintf(out, size, "%s: lines %llu to %llu", name, (unsigned long long)line,
			 (unsigned long long)line + m->lines - 1);
}
