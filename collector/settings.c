/*
 * settings.c - the table of options of a recording.
 *
 * It makes the options of `mlprof run`, the MLPROF_* variables, --help, the man pages and the
 * completions. Choices stand in the order of the enums in wire.h.
 */
#include "settings.h"

#include <stddef.h>

#define AT(field) offsetof(struct settings, field)
#define SHAPES (OPTION_VARIABLE | OPTION_RECORDED)

const struct option_row settings_rows[] = {
	{ 'o', "output", OPTION_FILE, "FILE", NULL, AT(output), OPTION_VARIABLE,
	  "Write the trace to FILE instead of mlprof-NAME-PID.perfetto-trace in the current directory. The summaries go "
	  "beside it, as X.summary.txt and X.summary.json when FILE is X.perfetto-trace. If FILE is a device such as "
	  "/dev/null, there are no summary files." },
	{ 0, "stacks", OPTION_CHOICE, "none|caller|full", "full", AT(stacks), SHAPES,
	  "How much of the call stack each record carries: all of it, the caller alone, or nothing." },
	{ 0, "large", OPTION_SIZE, "SIZE", "1MiB", AT(large), SHAPES,
	  "Draw each block of at least SIZE as a span of its own, from its birth to its death. SIZE is in bytes or has "
	  "a suffix K, M or G (KiB, MiB, GiB)." },
	{ 0, "follow", OPTION_CHOICE, "none|all", "all", AT(follow), SHAPES,
	  "Record the processes that the program starts as well, or the program alone." },
	{ 0, "on-full", OPTION_CHOICE, "block|drop", "block", AT(on_full), SHAPES,
	  "When the collector cannot keep up: let the program wait, or drop records and count them." },
	{ 0, "api", OPTION_SET, "opencl,vulkan", "opencl,vulkan", AT(apis), SHAPES,
	  "Record these device APIs: a list with commas, or none." },
	{ 0, "probes", OPTION_PROBES, "LIST", NULL, AT(probes), SHAPES,
	  "Which entry points of libraries to record, as a list with commas: +PRESET and -PRESET add presets to those that are "
	  "on by default and take them away, all and none stand for all presets, other words name probe files of your own. "
	  "mlprof probes lists the presets, mlprof-probes(5) describes the files." },
	{ 0, "device-time", OPTION_CHOICE, "kernel|submit|off", "kernel", AT(device_time), SHAPES,
	  "What the device's own clock is asked for: the time of each kernel and transfer; that of each submission as a "
	  "whole, which costs less where the device is slow to stamp; or nothing, so that times are those the host saw." },
	{ 0, "sample", OPTION_COUNT, "MS", "20", AT(sample_ms), SHAPES,
	  "Look up RSS, page faults and CPU time of each process every MS milliseconds, or a fifth as often while RSS stays as it is; "
	  "0 switches this off. The highest RSS is the kernel's own, up to the last look." },
	{ 0, "wait", OPTION_SECONDS, "SECONDS", "2", AT(wait_ms), OPTION_VARIABLE,
	  "How long to wait for the other processes of the tree once the program itself has ended." },
	{ 0, "raw", OPTION_FILE, "FILE", NULL, AT(raw), OPTION_VARIABLE,
	  "Keep the raw stream of records in FILE, for mlprof replay and mlprof dump." },
	{ 'q', "quiet", OPTION_FLAG, NULL, NULL, AT(quiet), OPTION_VARIABLE,
	  "Print no summary and no live status; the files are written all the same." },
	{ 0, "json", OPTION_FLAG, NULL, NULL, AT(json), 0,
	  "Print the summary as JSON on standard output instead of as text on standard error." },
	{ 0, "debuginfod", OPTION_FLAG, NULL, NULL, AT(debuginfod), SHAPES,
	  "Fetch missing debug information from the servers in DEBUGINFOD_URLS. Nothing is fetched otherwise." },
	{ 0, "check-stacks", OPTION_FLAG, NULL, NULL, AT(check_stacks), SHAPES | OPTION_HIDDEN,
	  "Compare every stack with libunwind's (slow; for tests of mlprof itself)." },
	{ 0 }
};
