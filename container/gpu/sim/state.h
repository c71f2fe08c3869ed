/* What the simulated driver is told by its state file, read again at each call. */
#ifndef BERTH_SIM_STATE_H
#define BERTH_SIM_STATE_H

#include <nvml.h>

#include "json.h"

enum { MAX_CARDS = 64, MAX_MIG = 16 };

/* A handle points into a fixed table: it stays good whatever becomes of the card. */
struct slot {
	unsigned card;
	int mig; /* -1: the card itself */
};

/* call is one call of the driver: its view of the state, and what the handle means in it. */
struct call {
	char *text;
	struct json *state;
	const struct json *card, *mig; /* mig is NULL for a whole card */
	unsigned index;
};

/* sim_begin reads the state for the function called name. Where the state says so it blocks,
 * and it returns the error that the function has to return. device is what a handle points to, or NULL for calls that
 * concern no card. After NVML_SUCCESS sim_end has to be called; after an error it was. */
nvmlReturn_t sim_begin(struct call *c, const char *name, const void *device);
nvmlReturn_t sim_end(struct call *c, nvmlReturn_t answer);

nvmlDevice_t sim_handle(unsigned card, int mig);

/* sim_alive tells whether a process of the state still holds its memory: it lives, or the
 * state calls it a ghost. */
int sim_alive(const struct json *process);

/* sim_nap waits for that long, or less if it is interrupted. */
void sim_nap(unsigned ms);

#endif
