/* Which interfaces a program has, and which frame queues they distribute received frames to: from two XML files. */
#ifndef USDPAA_NETCFG_H
#define USDPAA_NETCFG_H

#include <net/ethernet.h>
#ifdef __GLIBC__
#include <argp.h>
#endif

#include "fman.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Frame queues `start` to `start + count - 1`. */
struct fm_eth_port_fqrange {
	struct list_head list;
	uint32_t start;
	uint32_t count;
};

struct fm_eth_port_cfg {
	/* Of `struct fm_eth_port_fqrange`. */
	struct list_head *list;
	/* The frame queue of what goes to no other. */
	uint32_t rx_def;
	struct fman_if *fman_if;
};

struct usdpaa_netcfg_info {
	uint8_t num_ethports;
	__extension__ struct fm_eth_port_cfg port_cfg[0];
};

/* NULL, with a line on stderr, if a file cannot be read, or the files do not belong together. */
struct usdpaa_netcfg_info *usdpaa_netcfg_acquire(const char *pcd_file, const char *cfg_file);
void usdpaa_netcfg_release(struct usdpaa_netcfg_info *cfg_ptr);
/* Prints it. */
void dump_usdpaa_netcfg(struct usdpaa_netcfg_info *cfg_ptr);
void usdpaa_netcfg_enable_disable_shared_rx(const struct fman_if *fif, int flag_up);
/* The address of a network interface of Linux, by name; 0, or a negative error number. */
int get_mac_addr(const char *vname, struct ether_addr *src_mac);
int set_mac_addr(const char *vname, struct ether_addr *mac);

#ifdef __GLIBC__
/*
 * A child for a program's `struct argp`: `-i LIST`, `--fm-interfaces=LIST`, which of the configuration's interfaces
 * usdpaa_netcfg_acquire() takes, by commas: fm1-gb0, fm1-10g, fm2-mac9.
 */
extern const struct argp netcfg_argp;
#endif

#ifdef __cplusplus
}
#endif

#endif
