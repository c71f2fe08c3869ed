#include "json.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

/* A value needs at least one byte of its own, so as many nodes as bytes are enough. */
struct reader {
	char *at, *end;
	struct json *nodes;
	size_t used, room;
	int depth;
};

static int value(struct reader *r, struct json *v);

static void space(struct reader *r)
{
	while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
		r->at++;
}

static int take(struct reader *r, char c)
{
	space(r);
	if (r->at >= r->end || *r->at != c)
		return 0;
	r->at++;
	return 1;
}

static struct json *node(struct reader *r)
{
	return r->used < r->room ? &r->nodes[r->used++] : NULL;
}

/* string ends the text in place. Escapes other than \" \\ \/ are refused: names need none. */
static int string(struct reader *r, const char **text)
{
	char *to;

	if (!take(r, '"'))
		return 0;
	*text = to = r->at;
	while (r->at < r->end && *r->at != '"') {
		if ((unsigned char)*r->at < ' ')
			return 0;
		if (*r->at == '\\') {
			r->at++;
			if (r->at >= r->end || !*r->at || !strchr("\"\\/", *r->at))
				return 0;
		}
		*to++ = *r->at++;
	}
	if (r->at >= r->end)
		return 0;
	r->at++; /* the closing quote; to is at or before it */
	*to = 0;
	return 1;
}

static int members(struct reader *r, struct json *v, char close, int named)
{
	struct json **last = &v->first;

	if (take(r, close))
		return 1;
	do {
		struct json *one = node(r);

		if (!one || (named && (!string(r, &one->key) || !take(r, ':'))) || !value(r, one))
			return 0;
		*last = one;
		last = &one->next;
	} while (take(r, ','));
	return take(r, close);
}

static int word(struct reader *r, const char *w)
{
	size_t n = strlen(w);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, w, n) != 0)
		return 0;
	r->at += n;
	return 1;
}

static int number(struct reader *r, struct json *v)
{
	char *end;

	if (r->at >= r->end || !strchr("-0123456789", *r->at) || !*r->at)
		return 0;
	v->kind = J_NUMBER;
	v->number = strtod(r->at, &end); /* the text ends with a NUL */
	if (end == r->at || end > r->end)
		return 0;
	r->at = end;
	return 1;
}

static int value(struct reader *r, struct json *v)
{
	int ok;

	space(r);
	if (r->at >= r->end || ++r->depth > MAX_DEPTH)
		return 0;
	switch (*r->at) {
	case '{':
		v->kind = J_OBJECT;
		r->at++;
		ok = members(r, v, '}', 1);
		break;
	case '[':
		v->kind = J_ARRAY;
		r->at++;
		ok = members(r, v, ']', 0);
		break;
	case '"':
		v->kind = J_STRING;
		ok = string(r, &v->text);
		break;
	case 't':
		v->kind = J_TRUE;
		ok = word(r, "true");
		break;
	case 'f':
		v->kind = J_FALSE;
		ok = word(r, "false");
		break;
	case 'n':
		v->kind = J_NULL;
		ok = word(r, "null");
		break;
	default:
		ok = number(r, v);
	}
	r->depth--;
	return ok;
}

struct json *json_parse(char *text, size_t len)
{
	struct reader r = { text, text + len, NULL, 0, len + 1, 0 };

	r.nodes = calloc(r.room, sizeof *r.nodes);
	if (!r.nodes)
		return NULL;
	if (value(&r, node(&r))) {
		space(&r);
		if (r.at == r.end)
			return r.nodes;
	}
	free(r.nodes);
	return NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
	const struct json *m;

	if (!object || object->kind != J_OBJECT)
		return NULL;
	for (m = object->first; m; m = m->next)
		if (strcmp(m->key, key) == 0)
			return m;
	return NULL;
}

const struct json *json_at(const struct json *array, unsigned n)
{
	const struct json *m = array && array->kind == J_ARRAY ? array->first : NULL;

	while (m && n--)
		m = m->next;
	return m;
}

unsigned json_len(const struct json *array)
{
	unsigned n = 0;

	while (json_at(array, n))
		n++;
	return n;
}

double json_number(const struct json *v, double otherwise)
{
	return v && v->kind == J_NUMBER ? v->number : otherwise;
}

const char *json_text(const struct json *v, const char *otherwise)
{
	return v && v->kind == J_STRING ? v->text : otherwise;
}
