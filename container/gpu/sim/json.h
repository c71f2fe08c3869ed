/* A reader for the small JSON files that describe simulated cards. */
#ifndef BERTH_SIM_JSON_H
#define BERTH_SIM_JSON_H

#include <stddef.h>

enum kind { J_NULL, J_FALSE, J_TRUE, J_NUMBER, J_STRING, J_ARRAY, J_OBJECT };

struct json {
	enum kind kind;
	const char *key;    /* in an object; otherwise NULL */
	const char *text;   /* of a string */
	double number;
	struct json *first; /* of an array or object */
	struct json *next;
};

/* json_parse reads text, which it changes: strings are ended in place. It returns NULL for
 * anything that is not one JSON value, and what it returns is freed as one block with free(). */
struct json *json_parse(char *text, size_t len);

/* json_get finds a member of an object; NULL where there is none, or no object. */
const struct json *json_get(const struct json *object, const char *key);

/* json_at finds the n-th element; NULL where there is none. */
const struct json *json_at(const struct json *array, unsigned n);

unsigned json_len(const struct json *array);
double json_number(const struct json *v, double otherwise);
const char *json_text(const struct json *v, const char *otherwise);

#endif
