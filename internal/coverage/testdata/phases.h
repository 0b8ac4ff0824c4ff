/* Waits for a line of input where there is an argument; what ran before is not counted. */
#ifdef PHASES
#ifdef GCOV
#ifdef __cplusplus
extern "C"
#endif
void __gcov_reset(void);
#endif
static void phase(void) {
	puts("ready");                         /* not compared */
	fflush(stdout);                        /* not compared */
	while (getchar() != '\n')              /* not compared */
		;                                  /* not compared */
#ifdef GCOV
	__gcov_reset();
#endif
} /* not compared */
#else
static void phase(void) {
}
#endif
