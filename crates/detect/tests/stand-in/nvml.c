/* Stands in for the management library of NVIDIA's driver in tests, with the calls and the layouts of nvml.h that are
 * used. What it answers is chosen when it is built: LOST, HANGING, NOT_LOADED, OLD, FORBIDDEN, PARTS. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} pci_info;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_info;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; } process_info;

/* A device is its number and one, a part of it a hundred more. */
#define NUMBER(device) ((unsigned)((unsigned long)(device) % 100) - 1)
#define IS_PART(device) ((unsigned long)(device) > 100)

int nvmlInit_v2(void) {
#ifdef HANGING
    for (;;) pause();
#endif
#ifdef NOT_LOADED
    return DRIVER_NOT_LOADED;
#endif
    return SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "550.54.15"); return SUCCESS; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12040; return SUCCESS; }
int nvmlSystemGetProcessName(unsigned pid, char *text, unsigned size) { snprintf(text, size, "python-%u", pid); return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
#ifdef LOST
    if (index == 1) return GPU_IS_LOST;
#endif
    *device = (void *)(unsigned long)(index + 1);
    return SUCCESS;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) {
    snprintf(text, size, IS_PART(device) ? "NVIDIA A100-SXM4-80GB MIG 1g.10gb" : "NVIDIA A100-SXM4-80GB");
    return SUCCESS;
}
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    snprintf(text, size, "%s-%u", IS_PART(device) ? "MIG" : "GPU", NUMBER(device));
    return SUCCESS;
}
int nvmlDeviceGetVbiosVersion(void *device, char *text, unsigned size) { (void)device; snprintf(text, size, "92.00"); return SUCCESS; }
int nvmlDeviceGetPciInfo_v3(void *device, pci_info *info) {
    memset(info, 0, sizeof *info);
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", 0x5e + NUMBER(device));
    return SUCCESS;
}
#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(void *device, memory_info *info) {
#ifdef FORBIDDEN
    (void)device; (void)info;
    return NO_PERMISSION;
#else
    (void)device;
    info->total = 80ull << 30;
    info->used = 2ull << 30;
    info->reserved = 1ull << 30;
    info->free = info->total - info->used - info->reserved;
    return SUCCESS;
#endif
}
#endif
int nvmlDeviceGetUtilizationRates(void *device, utilization *rates) {
    rates->gpu = 40 + NUMBER(device);
    rates->memory = 1;
    return SUCCESS;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) { (void)sensor; *degrees = 50 + NUMBER(device); return SUCCESS; }
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
    if (NUMBER(device) == 1) return NOT_SUPPORTED;
    *milliwatts = 70500;
    return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process_info *processes) {
    unsigned room = *count;
    *count = NUMBER(device) == 0;
    if (*count > room) return INSUFFICIENT_SIZE;
    if (*count) processes[0] = (process_info){ 4242, 1ull << 30, 0xffffffffu, 0xffffffffu };
    return SUCCESS;
}
int nvmlDeviceGetPersistenceMode(void *device, unsigned *mode) { *mode = NUMBER(device) == 0; return SUCCESS; }
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) {
#ifdef PARTS
    *current = *pending = NUMBER(device) == 1;
    return SUCCESS;
#else
    (void)device; (void)current; (void)pending;
    return NOT_SUPPORTED;
#endif
}
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { (void)device; *count = 7; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **part) {
    if (index > 0) return 6; /* not found */
    *part = (void *)((unsigned long)device + 100);
    return SUCCESS;
}
