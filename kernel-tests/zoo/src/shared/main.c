/* The executable of a program that is a shared library. */
int zoo_main(int argc, char **argv, char **envp);

int main(int argc, char **argv, char **envp)
{
	return zoo_main(argc, argv, envp);
}
