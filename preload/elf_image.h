/*
 * elf_image.h - what a loaded module says of itself: its symbols and its relocations, read where ld.so mapped them.
 */
#ifndef ELF_IMAGE_H
#define ELF_IMAGE_H

#include "guest.h"
#include <link.h>

struct elf_image {
	u64 bias;
	const Elf64_Sym *symbols;
	const char *strings;
	const u32 *gnu_hash;
	const Elf64_Rela *rela, *plt;           /* plt: DT_JMPREL */
	u64 relas, plts, relatives;             /* how many; the first `relatives` of rela name no symbol */
	const Elf64_Dyn *dynamic;
	const u16 *versions;                    /* of each symbol; NULL: none has one */
	const Elf64_Verneed *needs;             /* the versions that it wants of others ... */
	const Elf64_Verdef *defines;            /* ... and has itself; NULL: none */
};

bool elf_open(struct elf_image *e, const struct link_map *map);
void *elf_symbol(const struct elf_image *e, const char *name);         /* a function it defines, or NULL */
const char *elf_version(const struct elf_image *e, u32 symbol);         /* that a reference asks for; NULL: any */
void *elf_next_symbol(const char *name);        /* the first module after us that defines it, in ld.so's order */
const char *elf_file(const struct link_map *map);       /* its name without the directory */

/* What a reference of this module means: what one of the libraries that it names defines, else the first module that
 * defines it, but never us. ld.so's list must not change meanwhile: inside of bind_read_list(), or by elf_meaning_for(). */
void *elf_meaning(const struct elf_image *e, const char *name);
void *elf_meaning_for(const void *code, const char *name);

/* In an executable at a fixed address, a function of another library may have its address: that of the executable's own PLT
 * entry, which leads through a GOT entry of its own. Is this one of them? */
bool elf_is_stand_in(const void *code, const char *name);

/* Is it defined without a version? Such a function serves whatever version is asked for. */
bool elf_serves_all_versions(const void *code, const char *name);

#endif
