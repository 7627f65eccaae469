/*
 * vk_clock.c - the device's clock against the host's.
 *
 * Where the driver cannot read its clock for us, each submit gives a bound: its last stamp was taken between the submit
 * and the moment when it was seen to be done.
 */
#include "vk.h"

enum { EVERY_TICKS = 100000000 };       /* some 50 ms */

u64 vk_clock_monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

/*
 * Stamps of fewer than 64 bits wrap: they are taken to lie within half a turn of what the clock must show by now, going by
 * the host's clock since the last stamp.
 */
static u64 extend(struct vk_device *d, u32 bits, u64 stamp)
{
	u64 mask = (1ull << bits) - 1, now = vk_clock_monotonic(), due, step;

	stamp &= mask;
	spin_lock(&d->lock);
	due = d->clock_long ? d->clock_long + (u64)((float)(now - d->clock_at) / d->period) : stamp;
	step = (stamp - due) & mask;
	if (step <= mask / 2 || due < mask + 1 - step)
		stamp = due + step;
	else
		stamp = due - (mask + 1 - step);
	if (stamp > d->clock_long) {
		d->clock_long = stamp;
		d->clock_at = now;
	}
	spin_unlock(&d->lock);
	return stamp;
}

u64 vk_clock_ns(struct vk_device *d, u32 bits, u64 stamp)
{
	u64 long_stamp = bits < 64 ? extend(d, bits, stamp) : stamp;

	return d->period == 1.0f ? long_stamp : (u64)((long double)long_stamp * d->period);
}

static u32 most_bits(const struct vk_device *d)
{
	u32 bits = 0;

	for (u32 i = 0; i < d->families; i++)
		bits = d->family[i].bits > bits ? d->family[i].bits : bits;
	return bits ? bits : 64;
}

void vk_clock_read(struct vk_device *d, bool now)
{
	VkCalibratedTimestampInfoEXT domains[2] = {
		{ .sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, .timeDomain = VK_TIME_DOMAIN_DEVICE_EXT },
		{ .sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, .timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT },
	};
	struct rec_device_clock c = { .device_id = d->number };
	u64 stamps[2] = { 0, 0 };

	c.before = ticks();
	if (!d->calibrated || !vk_wanted() || (!now && c.before < __atomic_load_n(&d->calibrate_next, __ATOMIC_RELAXED)))
		return;
	__atomic_store_n(&d->calibrate_next, c.before + EVERY_TICKS, __ATOMIC_RELAXED);
	if (d->bell)
		stamps[0] = stamps[1] = vk_clock_monotonic();   /* that is what we stamp with */
	else if (d->fn.vkGetCalibratedTimestampsEXT(d->handle, d->monotonic ? 2 : 1, domains, stamps, &c.deviation) != VK_SUCCESS)
		return;
	c.after = ticks();
	c.device = vk_clock_ns(d, most_bits(d), stamps[0]);
	c.monotonic = stamps[1];
	device_clock_note(&c);
}

void vk_clock_bound(struct vk_device *d, u64 before, u64 after, u64 ns)
{
	if (!d->calibrated)
		device_clock_note(&(struct rec_device_clock){ .device_id = d->number, .before = before, .after = after, .device = ns });
}
