/* Processes on the simulated cards, and the events of the simulated driver. */
#define EXPORT __attribute__((visibility("default")))

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "state.h"

enum { NO_INSTANCE = 0xFFFFFFFF };

/* listed tells whether the n-th process of a card is of that kind and still there. */
static int listed(const struct call *c, const struct json *p, const char *kind)
{
	if (c->mig && json_number(json_get(p, "gi"), -1) != json_number(json_get(c->mig, "gi"), -2))
		return 0;
	return strcmp(json_text(json_get(p, "kind"), "compute"), kind) == 0 && sim_alive(p);
}

static nvmlReturn_t list(const char *name, const char *kind, nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos)
{
	unsigned room = *count, n = 0;
	const struct json *p;
	struct call c;
	nvmlReturn_t ret = sim_begin(&c, name, device.handle);

	if (ret != NVML_SUCCESS)
		return ret;
	p = json_get(c.card, "processes");
	for (p = p ? p->first : NULL; p; p = p->next) {
		const struct json *memory = json_get(p, "memory");

		if (!listed(&c, p, kind))
			continue;
		if (n < room && infos) {
			infos[n].pid = (unsigned)json_number(json_get(p, "pid"), 0);
			infos[n].usedGpuMemory = memory ? (unsigned long long)json_number(memory, 0) : (unsigned long long)NVML_VALUE_NOT_AVAILABLE;
			infos[n].gpuInstanceId = (unsigned)json_number(json_get(p, "gi"), NO_INSTANCE);
			infos[n].computeInstanceId = NO_INSTANCE;
		}
		n++;
	}
	*count = n;
	return sim_end(&c, n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos)
{
	return list(__func__, "compute", device, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos)
{
	return list(__func__, "graphics", device, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos)
{
	return list(__func__, "mps", device, count, infos);
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned *count,
	unsigned long long since)
{
	unsigned room = *count, n = 0;
	struct timespec now;
	const struct json *p;
	struct call c;
	nvmlReturn_t ret = sim_begin(&c, __func__, device.handle);

	(void)since;
	if (ret != NVML_SUCCESS)
		return ret;
	if (c.mig || json_get(c.card, "mig"))
		return sim_end(&c, NVML_ERROR_NOT_SUPPORTED);
	clock_gettime(CLOCK_REALTIME, &now);
	p = json_get(c.card, "processes");
	for (p = p ? p->first : NULL; p; p = p->next) {
		if (!json_get(p, "utilization") || !sim_alive(p))
			continue;
		if (n < room && samples) {
			memset(&samples[n], 0, sizeof samples[n]);
			samples[n].pid = (unsigned)json_number(json_get(p, "pid"), 0);
			samples[n].timeStamp = (unsigned long long)now.tv_sec * 1000000ULL + (unsigned long long)now.tv_nsec / 1000;
			samples[n].smUtil = (unsigned)json_number(json_get(p, "utilization"), 0);
		}
		n++;
	}
	*count = n;
	if (!samples)
		return sim_end(&c, n ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_ERROR_NOT_FOUND);
	return sim_end(&c, n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
}

/* An event set hands out the events of the state file whose ids are higher than any it saw. */
struct events {
	double seen;
	unsigned long long cards; /* bit n: the n-th is watched */
};

static double newest(const struct json *events)
{
	double id = 0;
	const struct json *e;

	for (e = events ? events->first : NULL; e; e = e->next)
		if (json_number(json_get(e, "id"), 0) > id)
			id = json_number(json_get(e, "id"), 0);
	return id;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	struct events *e;
	struct call c;
	nvmlReturn_t ret = sim_begin(&c, __func__, NULL);

	if (ret != NVML_SUCCESS)
		return ret;
	e = calloc(1, sizeof *e);
	if (!e)
		return sim_end(&c, NVML_ERROR_MEMORY);
	e->seen = newest(json_get(c.state, "events"));
	set->handle = (struct nvmlEventSet_st *)e;
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	free(set.handle);
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	struct call c;
	nvmlReturn_t ret = sim_begin(&c, __func__, device.handle);

	if (ret != NVML_SUCCESS)
		return ret;
	if (types & nvmlEventTypeXidCriticalError)
		((struct events *)set.handle)->cards |= 1ULL << c.index;
	return sim_end(&c, NVML_SUCCESS);
}

/* next finds the oldest event that the set has not handed out. */
static const struct json *next(const struct call *c, const struct events *set)
{
	const struct json *found = NULL, *e = json_get(c->state, "events");

	for (e = e ? e->first : NULL; e; e = e->next) {
		double id = json_number(json_get(e, "id"), 0);
		unsigned card = (unsigned)json_number(json_get(e, "card"), MAX_CARDS);

		if (id <= set->seen || card >= MAX_CARDS || !(set->cards >> card & 1))
			continue;
		if (!found || id < json_number(json_get(found, "id"), 0))
			found = e;
	}
	return found;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout)
{
	struct events *events = (struct events *)set.handle;
	unsigned waited;

	for (waited = 0;; waited += 20) {
		const struct json *e;
		struct call c;
		nvmlReturn_t ret = sim_begin(&c, __func__, NULL);

		if (ret != NVML_SUCCESS)
			return ret;
		e = next(&c, events);
		if (e) {
			memset(data, 0, sizeof *data);
			events->seen = json_number(json_get(e, "id"), 0);
			data->device = sim_handle((unsigned)json_number(json_get(e, "card"), 0), -1);
			data->eventType = nvmlEventTypeXidCriticalError;
			data->eventData = (unsigned long long)json_number(json_get(e, "xid"), 999);
			data->gpuInstanceId = data->computeInstanceId = NO_INSTANCE;
			return sim_end(&c, NVML_SUCCESS);
		}
		sim_end(&c, NVML_SUCCESS);
		if (waited >= timeout)
			return NVML_ERROR_TIMEOUT;
		sim_nap(20);
	}
}
