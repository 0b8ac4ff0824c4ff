# For gdb: what variables have before each instruction that a routine executes. TestVariablesInGDB
# gives ASKED, a file with "ADDRESS NAME NAME..." for each of these, and prints to TOLD "INDEX NAME
# VALUE". Addresses are link-time.
import os

import gdb

asked = [line.split() for line in open(os.environ["ASKED"])]
told = open(os.environ["TOLD"], "w")
for setting in ("pagination off", "confirm off", "disable-randomization on",
                "exec-wrapper env -i"):
    gdb.execute("set " + setting)
gdb.execute("starti > /dev/null", to_string=True)
program = gdb.current_progspace().filename
maps = [line.split() for line in gdb.execute("info proc mappings", to_string=True).splitlines()]
base = int(next(m[0] for m in maps if m and m[-1] == program), 16)


def go_to(address):
    gdb.Breakpoint("*%#x" % address, temporary=True)
    gdb.execute("continue", to_string=True)


go_to(base + int(asked[0][0], 16))
for index, (address, *names) in enumerate(asked):
    address = base + int(address, 16)
    if gdb.newest_frame().pc() != address:  # it is in a routine that was called
        go_to(address)
    if gdb.newest_frame().pc() != address:
        break
    for name in names:
        try:
            value = gdb.parse_and_eval(name)
            kind = value.type.strip_typedefs().code
            is_float = kind == gdb.TYPE_CODE_FLT
            text = "%.9g" % float(value) if is_float else str(int(value) & (1 << 64) - 1)
        except gdb.error:  # it does not know where that is
            continue
        print(index, name, text, file=told)
    gdb.execute("stepi", to_string=True)
told.close()
gdb.execute("kill")
