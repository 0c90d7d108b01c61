/* Stands in the place of the security engine's header: there is no such engine. Programs say which one they have. */
#ifndef USDPAA_FLIB_RTA_H
#define USDPAA_FLIB_RTA_H

enum rta_sec_era {
	RTA_SEC_ERA_1,
	RTA_SEC_ERA_2,
	RTA_SEC_ERA_3,
	RTA_SEC_ERA_4,
	RTA_SEC_ERA_5,
	RTA_SEC_ERA_6,
	RTA_SEC_ERA_7,
	RTA_SEC_ERA_8,
	MAX_SEC_ERA = RTA_SEC_ERA_8
};

/* A user's number of an era, from 1 on, and back. */
#define INTL_SEC_ERA(era) ((enum rta_sec_era)((era) - 1))
#define USER_SEC_ERA(era) ((int)(era) + 1)

static inline int rta_set_sec_era(enum rta_sec_era era)
{
	return era <= MAX_SEC_ERA ? 0 : -1;
}

static inline enum rta_sec_era rta_get_sec_era(void)
{
	return RTA_SEC_ERA_2;
}

#endif
