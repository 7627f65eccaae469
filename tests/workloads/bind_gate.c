// cc: -shared -fPIC
/*
 * bind_gate.c - a function that is picked when somebody looks for it (an ifunc), who may be made to wait meanwhile; built with -DUSER, a
 * library that refers to it and is never called. The function has the name of an entry point that mlprof binds, and no caller.
 */
#ifdef USER
void vkCmdDebugMarkerEndEXT(void);
void gate_use(void) { vkCmdDebugMarkerEndEXT(); }
#else
void (*gate_reached)(void);

static void nothing(void) { }

static void (*pick(void))(void)
{
	if (gate_reached)
		gate_reached();
	return nothing;
}

void vkCmdDebugMarkerEndEXT(void) __attribute__((ifunc("pick")));
#endif
