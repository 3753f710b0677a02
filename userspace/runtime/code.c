// SPDX-License-Identifier: Apache-2.0
#include "runtime/code.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

static bool code_rows_sound(const struct runtime_code *c, const struct runtime_code_row *rows)
{
	for (uint32_t i = 0; i < c->nr_rows; i++)
		if ((i && rows[i].offset <= rows[i - 1].offset) || rows[i].offset > c->end - c->start ||
		    (rows[i].node >= c->nr_nodes && rows[i].node != RUNTIME_NO_NODE))
			return false;
	return true;
}

bool runtime_code_sound(const struct runtime_code *c, const struct runtime_code_node *nodes,
			const struct runtime_code_row *rows)
{
	if (c->end <= c->start || c->end - c->start > RUNTIME_CODE_BYTES || !memchr(c->name, '\0', sizeof(c->name)) ||
	    c->nr_functions > RUNTIME_CODE_FUNCTIONS || c->nr_nodes > RUNTIME_CODE_NODES || c->nr_rows > RUNTIME_CODE_ROWS ||
	    c->nr_more > RUNTIME_CODE_MORE)
		return false;
	for (uint32_t i = 0; i < c->nr_nodes; i++)
		if (nodes[i].function >= c->nr_functions || nodes[i].outer > i)
			return false;
	return code_rows_sound(c, rows);
}

/* How many rows begin at or before offset. */
static uint32_t code_rows_until(const struct runtime_code *c, const struct runtime_code_row *rows, uint64_t offset)
{
	return ARRAY_COUNT_WHILE(c->nr_rows, i, rows[i].offset <= offset);
}

uint32_t runtime_code_node_at(const struct runtime_code *c, const struct runtime_code_row *rows, uint64_t pc, bool caller)
{
	uint64_t offset = pc - c->start - caller;
	uint32_t n;

	if (pc < c->start + caller || pc >= c->end + caller)
		return RUNTIME_NO_NODE;
	n = code_rows_until(c, rows, offset);
	return n ? rows[n - 1].node : RUNTIME_NO_NODE;
}

size_t runtime_code_len(const struct runtime_code *c)
{
	return sizeof(*c) + c->nr_functions * sizeof(struct runtime_frame) + c->nr_nodes * sizeof(struct runtime_code_node) +
	       c->nr_rows * sizeof(struct runtime_code_row) + c->nr_more * sizeof(uint32_t);
}

int runtime_code_add_function(struct runtime_code_made *c, const struct runtime_frame *f)
{
	uint32_t i = 0, n = c->code.nr_functions;

	while (i < n && (c->functions[i].key != f->key || c->functions[i].flags != f->flags ||
			 memcmp(c->functions[i].cookie, f->cookie, sizeof(f->cookie)) != 0))
		i++;
	if (i == RUNTIME_CODE_FUNCTIONS)
		return -E2BIG;
	if (i == n) {
		c->functions[i] = *f;
		c->code.nr_functions++;
	}
	return (int)i;
}

int runtime_code_add_node(struct runtime_code_made *c, uint32_t function, uint32_t outer, uint32_t position)
{
	const struct runtime_code_node node = {.function = (uint16_t)function, .outer = (uint16_t)outer, .position = position};
	uint32_t i = 0, n = c->code.nr_nodes;

	while (i < n && memcmp(&c->nodes[i], &node, sizeof(node)) != 0)
		i++;
	if (i == RUNTIME_CODE_NODES)
		return -E2BIG;
	if (i == n) {
		c->nodes[i] = node;
		c->code.nr_nodes++;
	}
	return (int)i;
}

int runtime_code_add_row(struct runtime_code_made *c, uint32_t offset, uint32_t node)
{
	uint32_t n = c->code.nr_rows;

	if (n == RUNTIME_CODE_ROWS)
		return -E2BIG;
	if (n && offset < c->rows[n - 1].offset)
		return -EBADMSG;
	if (n && offset == c->rows[n - 1].offset) {
		c->rows[n - 1].node = node;
		return 0;
	}
	c->rows[n] = (struct runtime_code_row){.offset = offset, .node = node};
	c->code.nr_rows++;
	return 0;
}

int runtime_code_add_more(struct runtime_code_made *c, uint32_t more)
{
	if (c->code.nr_more == RUNTIME_CODE_MORE)
		return -E2BIG;
	c->more[c->code.nr_more++] = more;
	return 0;
}
