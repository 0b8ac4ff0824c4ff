// An empty main: nothing but the start-up code that the linker adds.
int main(void) { return 0; }
