package recovery_test

// switchFlags are the ways to compile switches.
var switchFlags = [][]string{
	{"-O0", "-fPIE", "-pie"}, {"-O1", "-fPIE", "-pie"}, {"-O2", "-fPIE", "-pie"}, {"-O3", "-fPIE",
		"-pie"}, {"-Os", "-fPIE", "-pie"},
	{"-O0", "-fno-pie", "-no-pie"}, {"-O1", "-fno-pie", "-no-pie"}, {"-O2", "-fno-pie", "-no-pie"},
	{"-O3", "-fno-pie", "-no-pie"},
	{"-O2", "-fPIE", "-pie", "-fcf-protection=full"}, {"-O2", "-fPIE", "-pie",
		"-fno-omit-frame-pointer"},
	{"-O1", "-fPIE", "-pie", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"},
	{"-O2", "-fPIE", "-pie", "-fsanitize=address"},
}
