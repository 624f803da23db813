/* Stands in for the management library of Ascend's driver in tests, with the functions and the layouts of
 * dcmi_interface_api.h that are used. What it answers is told by the file `dcmi.txt` beside it, read at each call, so
 * that a test can change its mind: a word a line.
 *
 *   910b, a3, duo, 950     which chips (8 cards; 4 cards with two chips; 1 card with two chips; 3 devices)
 *   code NAME CODE         the function answers with this code
 *   crash NAME, hang NAME  in that function
 *   garbage                strings without an end
 *   claim COUNT            so many cards
 *   sick                   the second chip
 *   noise                  printed on the standard output
 *
 * Left out when it is built: NO_CARDS, NO_DEVICES (a family of functions), FEW (all that is not needed for a list).
 * The file `alive` beside it is a pipe, which each process that loads it holds open and writes its id to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = -8255, INVALID_DEVICE = -8007 };

struct chip_info { unsigned char type[32], name[32], version[32]; unsigned ai_cores; };
struct chip_info_v2 { struct chip_info old; unsigned char npu_name[32]; };
struct pcie_info { unsigned vendor, sub_vendor, device, sub_device; int domain; unsigned bus, dev, function; unsigned char reserve[32]; };
struct hbm_info { unsigned long long size; unsigned freq; unsigned long long used; int temperature; unsigned bandwidth; };
struct memory_info {
    unsigned long long size, available;
    unsigned freq;
    unsigned long page, pages, pages_free;
    unsigned use;
    unsigned char reserve[60];
};
struct die { unsigned words[5]; };
struct process { int pid; unsigned long bytes; };

static void beside(char *path, size_t size, const char *name) {
    Dl_info info;
    dladdr((void *)beside, &info);
    snprintf(path, size, "%s", info.dli_fname);
    char *slash = strrchr(path, '/');
    snprintf(slash + 1, size - (size_t)(slash + 1 - path), "%s", name);
}

static int told(const char *wanted, long *number) {
    char path[4096], line[256], word[128];
    beside(path, sizeof path, "dcmi.txt");
    FILE *file = fopen(path, "r");
    int found = 0;
    size_t length = strlen(wanted);
    while (file && !found && fgets(line, sizeof line, file)) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(line, "\n"), line);
        found = strncmp(word, wanted, length) == 0 && (word[length] == 0 || word[length] == ' ');
        if (found && number) *number = strtol(word + length, NULL, 10);
    }
    if (file) fclose(file);
    return found;
}

__attribute__((constructor)) static void loaded(void) {
    char path[4096], id[32];
    beside(path, sizeof path, "alive");
    int alive = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (alive >= 0) {
        int length = snprintf(id, sizeof id, "%d\n", (int)getpid());
        if (write(alive, id, (size_t)length) < 0) _exit(1);
    }
}

/* What was asked of every function: a code other than 0 is its answer. */
static int asked(const char *name) {
    char wanted[128];
    long code;
    if (told("noise", NULL)) { printf("DrvMngGetConsoleLogLevel failed. (g_conLogLevel=3)\n"); fflush(stdout); }
    snprintf(wanted, sizeof wanted, "crash %s", name);
    if (told(wanted, NULL)) *(volatile int *)8 = 0;
    snprintf(wanted, sizeof wanted, "hang %s", name);
    while (told(wanted, NULL)) pause();
    snprintf(wanted, sizeof wanted, "code %s", name);
    return told(wanted, &code) ? (int)code : OK;
}
#define ASKED(name) do { int code = asked(name); if (code != OK) return code; } while (0)

static void say(void *into, size_t size, const char *text) {
    if (told("garbage", NULL)) { memset(into, 0xc3, size); return; }
    snprintf(into, size, "%s", text);
}

static int cards(void) { return told("910b", NULL) ? 8 : told("a3", NULL) ? 4 : told("duo", NULL) ? 1 : told("950", NULL) ? 3 : 0; }
static int chips_on_card(void) { return told("a3", NULL) || told("duo", NULL) ? 2 : 1; }
/* The Atlas 300I Duo is in the third slot. */
static int first_card(void) { return told("duo", NULL) ? 2 : 0; }

static int health_of(int number, unsigned *health) { ASKED("health"); *health = told("sick", NULL) && number == 1 ? 2 : 0; return OK; }
static int codes_of(int number, int *count, unsigned *codes, unsigned room) {
    ASKED("codes");
    *count = 0;
    if (told("sick", NULL) && number == 1 && room >= 2) { codes[0] = 0x80E18402; codes[1] = 0x80E01801; *count = 2; }
    return OK;
}
static int temperature_of(int number, int *degrees) { ASKED("temperature"); *degrees = 40 + number; return OK; }
static int hbm_of(int number, struct hbm_info *hbm) {
    ASKED("hbm");
    if (told("duo", NULL)) return NOT_SUPPORTED;
    hbm->size = told("950", NULL) ? 131072 : 65536;
    hbm->used = 3400 + (unsigned)number;
    return OK;
}
static int pcie_of(int number, struct pcie_info *info) {
    ASKED("pcie");
    info->domain = 0;
    info->bus = 0xc1 + (unsigned)number;
    return OK;
}
static int die_of(int number, int which, struct die *die) {
    ASKED("die");
    if (which != (told("950", NULL) ? 2 : 1)) return NOT_SUPPORTED;
    for (unsigned word = 0; word < 5; word++) die->words[word] = word + 1 + (unsigned)number * 16;
    return OK;
}
static int use_of(int number, int which, unsigned *rate) {
    ASKED("use");
    if (which != (told("950", NULL) ? 13 : 2)) return NOT_SUPPORTED;
    *rate = 10 + (unsigned)number;
    return OK;
}
static int processes_of(int number, struct process *list, int *count) {
    ASKED("processes");
    *count = number == 0;
    if (number == 0) { list[0].pid = 4242; list[0].bytes = 1ul << 30; }
    return OK;
}
static int firmware_of(unsigned char *version, unsigned room) { ASKED("firmware"); say(version, room, "7.8.0.6.201"); return OK; }
static void chip_info_of(struct chip_info *info) {
    say(info->type, 32, "Ascend");
    say(info->name, 32, told("910b", NULL) ? "910B3" : told("a3", NULL) ? "Ascend910" : told("duo", NULL) ? "310P3" : "Ascend950PR");
    say(info->version, 32, "V1");
    info->ai_cores = 20;
}
static int version_of(char *version, unsigned room) { ASKED("version"); say(version, room, told("950", NULL) ? "25.7.rc1" : "25.5.1"); return OK; }

#ifndef NO_CARDS
int dcmi_init(void) { ASKED("init"); return told("950", NULL) ? NOT_SUPPORTED : OK; }
int dcmi_get_card_list(int *count, int *list, int room) {
    ASKED("list");
    long claim;
    *count = cards();
    for (int card = 0; card < *count && card < room; card++) list[card] = first_card() + card;
    if (told("claim", &claim)) *count = (int)claim;
    return OK;
}
int dcmi_get_device_num_in_card(int card, int *count) { (void)card; ASKED("count"); *count = chips_on_card(); return OK; }
static int number(int card, int chip) { return (card - first_card()) * chips_on_card() + chip; }
static int exists(int card, int chip) {
    return card >= first_card() && card < first_card() + cards() && chip >= 0 && chip < chips_on_card();
}
#define THERE(card, chip) do { if (!exists(card, chip)) return INVALID_DEVICE; } while (0)
#ifndef FEW
int dcmi_get_device_logic_id(int *id, int card, int chip) { THERE(card, chip); ASKED("logic"); *id = number(card, chip); return OK; }
int dcmi_get_device_phyid_from_logicid(unsigned logic, unsigned *id) { ASKED("physical"); *id = logic + 8; return OK; }
int dcmi_get_device_type(int card, int chip, int *type) { THERE(card, chip); ASKED("type"); *type = 0; return OK; }
int dcmi_get_device_chip_info(int card, int chip, struct chip_info *info) { THERE(card, chip); ASKED("chip"); chip_info_of(info); return OK; }
int dcmi_get_device_pcie_info_v2(int card, int chip, struct pcie_info *info) { THERE(card, chip); return pcie_of(number(card, chip), info); }
int dcmi_get_device_health(int card, int chip, unsigned *health) { THERE(card, chip); return health_of(number(card, chip), health); }
int dcmi_get_device_errorcode_v2(int card, int chip, int *count, unsigned *codes, unsigned room) { THERE(card, chip); return codes_of(number(card, chip), count, codes, room); }
int dcmi_get_device_temperature(int card, int chip, int *degrees) { THERE(card, chip); return temperature_of(number(card, chip), degrees); }
int dcmi_get_device_power_info(int card, int chip, int *tenths) {
    THERE(card, chip);
    ASKED("power");
    /* one measure for a card with two chips, and none on the Duo, where the controller measures */
    if (told("duo", NULL) || chip > 0) return NOT_SUPPORTED;
    *tenths = 939;
    return OK;
}
int dcmi_mcu_get_power_info(int card, int *tenths) { THERE(card, 0); ASKED("card power"); if (!told("duo", NULL)) return NOT_SUPPORTED; *tenths = 428; return OK; }
int dcmi_get_device_hbm_info(int card, int chip, struct hbm_info *hbm) { THERE(card, chip); return hbm_of(number(card, chip), hbm); }
int dcmi_get_device_memory_info_v3(int card, int chip, struct memory_info *memory) {
    THERE(card, chip);
    ASKED("memory");
    if (!told("duo", NULL)) return NOT_SUPPORTED;
    memory->size = 44280;
    memory->available = 42751;
    return OK;
}
int dcmi_get_device_utilization_rate(int card, int chip, int which, unsigned *rate) { THERE(card, chip); return use_of(number(card, chip), which, rate); }
int dcmi_get_device_die_v2(int card, int chip, int which, struct die *die) { THERE(card, chip); return die_of(number(card, chip), which, die); }
int dcmi_get_device_resource_info(int card, int chip, struct process *list, int *count) { THERE(card, chip); return processes_of(number(card, chip), list, count); }
int dcmi_get_device_component_static_version(int card, int chip, int which, unsigned char *version, unsigned room) { THERE(card, chip); (void)which; return firmware_of(version, room); }
int dcmi_get_driver_version(char *version, unsigned room) { return version_of(version, room); }
#endif
#endif

#ifndef NO_DEVICES
int dcmiv2_init(void) { ASKED("init_2"); return told("950", NULL) ? OK : NOT_SUPPORTED; }
int dcmiv2_get_device_list(int *list, int *count, int room) {
    ASKED("list");
    *count = cards();
    /* the fourth slot is the third device */
    for (int device = 0; device < *count && device < room; device++) list[device] = device == 2 ? 3 : device;
    return OK;
}
int dcmiv2_get_device_chip_info(int id, struct chip_info_v2 *info) { (void)id; ASKED("chip"); chip_info_of(&info->old); say(info->npu_name, 32, "Ascend950PR"); return OK; }
int dcmiv2_get_chip_phy_id_by_dev_id(unsigned id, unsigned *physical) { ASKED("physical"); *physical = id; return OK; }
int dcmiv2_get_device_pcie_info(int id, struct pcie_info *info) { return pcie_of(id, info); }
int dcmiv2_get_device_health(int id, unsigned *health) { return health_of(id, health); }
int dcmiv2_get_device_error_code_list(int id, int *count, unsigned *codes, unsigned room) { return codes_of(id, count, codes, room); }
int dcmiv2_get_device_temperature(int id, int *degrees) { return temperature_of(id, degrees); }
int dcmiv2_get_device_power_info(int id, int *tenths) { (void)id; ASKED("power"); *tenths = 1904; return OK; }
int dcmiv2_get_device_hbm_info(int id, struct hbm_info *hbm) { return hbm_of(id, hbm); }
int dcmiv2_get_device_utilization_rate(int id, int which, unsigned *rate) { return use_of(id, which, rate); }
int dcmiv2_get_device_die_id(int id, int which, struct die *die) { return die_of(id, which, die); }
int dcmiv2_get_device_proc_mem_info(int id, struct process *list, int *count) { return processes_of(id, list, count); }
int dcmiv2_get_device_component_static_version(int id, int which, unsigned char *version, unsigned room) { (void)id; (void)which; return firmware_of(version, room); }
int dcmiv2_get_driver_version(char *version, unsigned room) { return version_of(version, room); }
#endif
