/* A C++ program finds the functions that USDPAA's headers declare. */

#include <usdpaa/fsl_usd.h>
#include <usdpaa/fsl_qman.h>
#include <usdpaa/fsl_bman.h>
#include <usdpaa/dma_mem.h>
#include <usdpaa/of.h>
#include <usdpaa/fman.h>
#include <usdpaa/fsl_fman.h>
#include <usdpaa/usdpaa_netcfg.h>
#include <usdpaa/ringway.h>

int main(void)
{
	if (of_init())
		return 1;
	of_finish();
	if (qman_global_init() || bman_global_init())
		return 2;
	return usdpaa_netcfg_acquire("/nosuch", "/nosuch") ? 3 : 0;
}
