/*
 * page.h - what the command and option tables look like to a reader: help texts, the generated parts of man
 * pages, shell completions.
 */
#ifndef PAGE_H
#define PAGE_H

#include "command.h"
#include "util/buf.h"

void page_overview(struct buf *b);                                      /* mlprof --help */
void page_help(struct buf *b, const struct command *c);                 /* mlprof help VERB */
int page_show(const struct command *c);                                 /* the same on stdout; the exit status */
/* Copies a man page, replacing lines "@OPTIONS verb@", "@VARIABLES verb@", "@COMMANDS@", "@EXAMPLES verb@" and
 * the word @VERSION@. 0 or -errno. */
int page_man(struct buf *b, const char *template_path);
bool page_completion(struct buf *b, const char *shell);                 /* false: no such shell */

#endif
