#include "state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_STATE = 1 << 20 };

static struct slot slots[MAX_CARDS][MAX_MIG + 1];

static const struct {
	const char *name;
	nvmlReturn_t code;
} errors[] = {
	{ "uninitialized", NVML_ERROR_UNINITIALIZED },
	{ "invalid_argument", NVML_ERROR_INVALID_ARGUMENT },
	{ "not_supported", NVML_ERROR_NOT_SUPPORTED },
	{ "no_permission", NVML_ERROR_NO_PERMISSION },
	{ "not_found", NVML_ERROR_NOT_FOUND },
	{ "driver_not_loaded", NVML_ERROR_DRIVER_NOT_LOADED },
	{ "timeout", NVML_ERROR_TIMEOUT },
	{ "gpu_is_lost", NVML_ERROR_GPU_IS_LOST },
	{ "reset_required", NVML_ERROR_RESET_REQUIRED },
	{ "lib_rm_version_mismatch", NVML_ERROR_LIB_RM_VERSION_MISMATCH },
	{ "in_use", NVML_ERROR_IN_USE },
	{ "unknown", NVML_ERROR_UNKNOWN },
};

static nvmlReturn_t code(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof errors / sizeof *errors; i++)
		if (strcmp(errors[i].name, name) == 0)
			return errors[i].code;
	return NVML_ERROR_UNKNOWN;
}

void sim_nap(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000L };

	nanosleep(&t, NULL);
}

static char *slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "r");
	char *text;

	if (!f)
		return NULL;
	text = malloc(MAX_STATE + 1);
	if (text) {
		*len = fread(text, 1, MAX_STATE, f);
		text[*len] = 0;
	}
	fclose(f);
	return text;
}

static void forget(struct call *c)
{
	free(c->state);
	free(c->text);
	c->state = NULL;
	c->text = NULL;
}

/* load reads the state file. A writer that does not rename its file into place may be met
 * half-way, so a file that makes no sense is read again a few times. */
static nvmlReturn_t load(struct call *c)
{
	const char *path = getenv("BERTH_NVML_SIM");
	int tries;

	memset(c, 0, sizeof *c);
	for (tries = 0; path && tries < 5; tries++) {
		size_t len = 0;

		c->text = slurp(path, &len);
		if (!c->text)
			return NVML_ERROR_DRIVER_NOT_LOADED;
		c->state = json_parse(c->text, len);
		if (c->state)
			return NVML_SUCCESS;
		forget(c);
		sim_nap(10);
	}
	return path ? NVML_ERROR_UNKNOWN : NVML_ERROR_DRIVER_NOT_LOADED;
}

/* rule finds what the state or the card says about a function: its own entry, or "*". */
static const struct json *rule(const struct call *c, const char *what, const char *name)
{
	const struct json *from[2] = { c->card, c->state };
	int i;

	for (i = 0; i < 2; i++) {
		const struct json *rules = json_get(from[i], what), *r = json_get(rules, name);

		if (!r && i == 0)
			r = json_get(rules, "*");
		if (r)
			return r;
	}
	return NULL;
}

static nvmlReturn_t resolve(struct call *c, const struct slot *s)
{
	if (!s)
		return NVML_SUCCESS;
	c->index = s->card;
	c->card = json_at(json_get(c->state, "cards"), s->card);
	if (!c->card)
		return NVML_ERROR_GPU_IS_LOST;
	if (s->mig < 0)
		return NVML_SUCCESS;
	c->mig = json_at(json_get(c->card, "mig"), (unsigned)s->mig);
	return c->mig ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t sim_begin(struct call *c, const char *name, const void *device)
{
	unsigned waited;

	for (waited = 0;; waited += 50) {
		nvmlReturn_t ret = load(c);
		const struct json *error;

		if (ret == NVML_SUCCESS)
			ret = resolve(c, device);
		if (ret != NVML_SUCCESS)
			return sim_end(c, ret);
		if (json_number(rule(c, "block", name), 0) > waited) {
			sim_end(c, NVML_SUCCESS);
			sim_nap(50);
			continue;
		}
		error = rule(c, "errors", name);
		if (!error)
			return NVML_SUCCESS;
		return sim_end(c, code(json_text(error, "")));
	}
}

nvmlReturn_t sim_end(struct call *c, nvmlReturn_t answer)
{
	forget(c);
	return answer;
}

nvmlDevice_t sim_handle(unsigned card, int mig)
{
	struct slot *s = &slots[card][mig + 1];
	nvmlDevice_t d;

	s->card = card;
	s->mig = mig;
	d.handle = (struct nvmlDevice_st *)s;
	return d;
}

int sim_alive(const struct json *process)
{
	const struct json *ghost = json_get(process, "ghost");
	pid_t pid = (pid_t)json_number(json_get(process, "pid"), 0);

	if (ghost && ghost->kind == J_TRUE)
		return 1;
	return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM);
}
