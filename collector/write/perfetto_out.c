/*
 * perfetto_out.c - whole packets to the file.
 *
 * A trace is packets one after the other, so a file that ends after any of them is valid. A write that stops half
 * way (disk full) is cut back to the last packet that got there whole; nothing is written after that.
 */
#include "perfetto.h"

#include <errno.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 20, TRACE_PACKET = 1, FLAG_CLEARED = 1, FLAG_NEEDS = 2 };

/* Length of the leading packets of `out` that lie whole within its first `bytes` bytes. */
static size_t whole_packets(const struct enc *out, size_t bytes)
{
	size_t end = 0;

	while (end < bytes) {
		size_t at = end + 1, len = 0, shift = 0;

		while (at < bytes && out->at[at] >= 0x80) {
			len |= (size_t)(out->at[at++] & 0x7f) << shift;
			shift += 7;
		}
		if (at >= bytes)
			break;
		len |= (size_t)out->at[at++] << shift;
		if (len > bytes - at)
			break;
		end = at + len;
	}
	return end;
}

static void cut_back(struct perfetto *w, size_t done, int error)
{
	w->error = -error;
	w->written += whole_packets(&w->out, done);
	if (ftruncate(w->fd, w->written) < 0)
		errno = 0;      /* a pipe or a terminal: what is out is out */
}

void out_flush(struct perfetto *w)
{
	size_t done = 0;

	while (!w->error && done < w->out.len) {
		ssize_t n = write(w->fd, w->out.at + done, w->out.len - done);

		if (n > 0)
			done += n;
		else if (n == 0 || errno != EINTR)
			cut_back(w, done, n ? errno : ENOSPC);
	}
	if (!w->error)
		w->written += done;
	w->out.len = 0;
}

u32 sequence_flags(struct perfetto *w, u32 sequence)
{
	bool first = !(w->started & 1u << sequence);

	w->started |= 1u << sequence;
	return first ? FLAG_CLEARED : FLAG_NEEDS;
}

/* `flags` 0: the sequence is one of SEQ_*, which are looked after here. */
struct enc *packet_open(struct perfetto *w, u32 sequence, u32 flags, u64 ns)
{
	w->packet = enc_open(&w->out, TRACE_PACKET);
	if (ns)
		enc_uint(&w->out, PACKET_TIMESTAMP, ns);
	enc_uint(&w->out, PACKET_SEQUENCE, sequence);
	enc_uint(&w->out, PACKET_FLAGS, flags ? flags : sequence_flags(w, sequence));
	return &w->out;
}

static void drop_unfinished(struct perfetto *w, size_t whole)
{
	w->out.len = whole;
	w->out.failed = false;
	out_flush(w);
	if (!w->error)
		w->error = -ENOMEM;
}

void packet_close(struct perfetto *w)
{
	enc_close(&w->out, w->packet);
	if (w->out.failed)
		drop_unfinished(w, w->packet - 1);
	else if (w->error)
		w->out.len = 0;
	else if (w->out.len >= BUFFER_BYTES)
		out_flush(w);
}

void packet_rare(struct perfetto *w, PerfettoMin__TracePacket *packet)
{
	packet->has_trusted_packet_sequence_id = packet->has_sequence_flags = 1;
	packet->trusted_packet_sequence_id = SEQ_HEAD;
	packet->sequence_flags = sequence_flags(w, SEQ_HEAD);
	w->packet = enc_open(&w->out, TRACE_PACKET);

	size_t len = perfetto_min__trace_packet__get_packed_size(packet);

	if (enc_room(&w->out, len))
		w->out.len += perfetto_min__trace_packet__pack(packet, w->out.at + w->out.len);
	packet_close(w);
}
