/* A stand-in for libnvidia-ml.so.1 on machines without a GPU: it answers what Berth asks of
 * NVML from the JSON file that BERTH_NVML_SIM names, read again at each call. What the file
 * does not say is not supported, as on cards that lack a sensor. */
#define EXPORT __attribute__((visibility("default")))

#include <stdio.h>
#include <string.h>

#include "state.h"

/* BEGIN reads the state, or returns what the state makes this function return. */
#define BEGIN(device) \
	struct call c; \
	nvmlReturn_t begun = sim_begin(&c, __func__, device); \
	if (begun != NVML_SUCCESS) \
		return begun

/* berthSimulated tells that this is no driver. */
EXPORT int berthSimulated(void);
int berthSimulated(void) { return 1; }

static void copy(char *to, unsigned room, const char *from)
{
	if (room)
		snprintf(to, room, "%s", from);
}

static nvmlReturn_t text_of(struct call *c, const struct json *v, char *to, unsigned room)
{
	const char *text = json_text(v, NULL);

	if (!text)
		return sim_end(c, NVML_ERROR_NOT_SUPPORTED);
	copy(to, room, text);
	return sim_end(c, NVML_SUCCESS);
}

static nvmlReturn_t uint_of(struct call *c, const struct json *v, unsigned *to)
{
	if (!v || v->kind != J_NUMBER)
		return sim_end(c, NVML_ERROR_NOT_SUPPORTED);
	*to = (unsigned)v->number;
	return sim_end(c, NVML_SUCCESS);
}

static nvmlReturn_t wide_of(struct call *c, const struct json *v, unsigned long long *to)
{
	if (!v || v->kind != J_NUMBER)
		return sim_end(c, NVML_ERROR_NOT_SUPPORTED);
	*to = (unsigned long long)v->number;
	return sim_end(c, NVML_SUCCESS);
}

/* of is a member of the MIG instance or, for a whole card, of the card. */
static const struct json *of(const struct call *c, const char *key)
{
	return json_get(c->mig ? c->mig : c->card, key);
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
	BEGIN(NULL);
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
	(void)flags;
	BEGIN(NULL);
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }

EXPORT const char *nvmlErrorString(nvmlReturn_t code)
{
	static __thread char text[32];

	snprintf(text, sizeof text, "simulated error %d", code);
	return text;
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	BEGIN(NULL);
	return text_of(&c, json_get(c.state, "driver"), version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	BEGIN(NULL);
	*version = (int)json_number(json_get(c.state, "cuda"), 0);
	return sim_end(&c, *version ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED);
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	BEGIN(NULL);
	*count = json_len(json_get(c.state, "cards"));
	if (*count > MAX_CARDS)
		*count = MAX_CARDS;
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	if (index >= MAX_CARDS)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = sim_handle(index, -1);
	BEGIN(device->handle);
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
	BEGIN(device.handle);
	return text_of(&c, of(&c, "name"), name, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
	BEGIN(device.handle);
	return text_of(&c, of(&c, "uuid"), uuid, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
	BEGIN(device.handle);
	return uint_of(&c, json_get(c.card, "minor"), minor);
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	BEGIN(device.handle);
	memset(pci, 0, sizeof *pci);
	copy(pci->busId, sizeof pci->busId, json_text(json_get(c.card, "pci"), ""));
	return sim_end(&c, *pci->busId ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED);
}

/* in_slice tells whether a process belongs to what the handle means. */
static int in_slice(const struct call *c, const struct json *p)
{
	return !c->mig || json_number(json_get(p, "gi"), -1) == json_number(json_get(c->mig, "gi"), -2);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	const struct json *p;
	double used;
	BEGIN(device.handle);

	if (!json_get(of(&c, "memory"), "total"))
		return sim_end(&c, NVML_ERROR_NOT_SUPPORTED);
	used = json_number(json_get(of(&c, "memory"), "used"), 0);
	p = json_get(c.card, "processes");
	for (p = p ? p->first : NULL; p; p = p->next)
		if (in_slice(&c, p) && sim_alive(p))
			used += json_number(json_get(p, "memory"), 0);
	memory->total = (unsigned long long)json_number(json_get(of(&c, "memory"), "total"), 0);
	memory->used = (unsigned long long)used;
	if (memory->used > memory->total)
		memory->used = memory->total;
	memory->free = memory->total - memory->used;
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
	BEGIN(device.handle);
	if (c.mig || !json_get(c.card, "utilization"))
		return sim_end(&c, NVML_ERROR_NOT_SUPPORTED);
	rates->gpu = (unsigned)json_number(json_get(c.card, "utilization"), 0);
	rates->memory = (unsigned)json_number(json_get(c.card, "memory_utilization"), 0);
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned *temp)
{
	(void)sensor;
	BEGIN(device.handle);
	return uint_of(&c, json_get(c.card, "temperature"), temp);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t which, unsigned *temp)
{
	BEGIN(device.handle);
	return uint_of(&c, which == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN ? json_get(c.card, "slowdown") : NULL, temp);
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts)
{
	BEGIN(device.handle);
	return uint_of(&c, json_get(c.card, "power"), milliwatts);
}

EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *milliwatts)
{
	BEGIN(device.handle);
	return uint_of(&c, json_get(c.card, "power_limit"), milliwatts);
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules)
{
	BEGIN(device.handle);
	return wide_of(&c, json_get(c.card, "energy"), millijoules);
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *mhz)
{
	BEGIN(device.handle);
	return uint_of(&c, json_get(json_get(c.card, "clocks"), type == NVML_CLOCK_MEM ? "memory" : "sm"), mhz);
}

EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned *percent)
{
	BEGIN(device.handle);
	return uint_of(&c, json_get(c.card, "fan"), percent);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
	BEGIN(device.handle);
	*mode = (nvmlComputeMode_t)json_number(json_get(c.card, "compute_mode"), NVML_COMPUTEMODE_DEFAULT);
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
	unsigned long long *errors)
{
	BEGIN(device.handle);
	if (counter != NVML_VOLATILE_ECC)
		return sim_end(&c, NVML_ERROR_NOT_SUPPORTED);
	return wide_of(&c, json_get(json_get(c.card, "ecc"), type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? "corrected" : "uncorrected"), errors);
}

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
	BEGIN(device.handle);
	if (c.mig)
		return sim_end(&c, NVML_ERROR_INVALID_ARGUMENT);
	if (!json_get(c.card, "mig"))
		return sim_end(&c, NVML_ERROR_NOT_SUPPORTED);
	*current = *pending = NVML_DEVICE_MIG_ENABLE;
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
	BEGIN(device.handle);
	*count = 7;
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig)
{
	BEGIN(device.handle);
	if (index >= MAX_MIG || c.mig)
		return sim_end(&c, NVML_ERROR_INVALID_ARGUMENT);
	if (!json_at(json_get(c.card, "mig"), index))
		return sim_end(&c, NVML_ERROR_NOT_FOUND);
	*mig = sim_handle(c.index, (int)index);
	return sim_end(&c, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id)
{
	BEGIN(device.handle);
	return uint_of(&c, json_get(c.mig, "gi"), id);
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id)
{
	BEGIN(device.handle);
	return uint_of(&c, json_get(c.mig, "ci"), id);
}
