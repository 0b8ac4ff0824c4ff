package privilege

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kernel.org/pub/linux/libs/security/libcap/cap"
)

const nobody = 65534

// TestMain lets the test binary, started again, confine itself and write its file: what is given up
// stays so.
func TestMain(m *testing.M) {
	if file := os.Getenv("CONFINE"); file != "" {
		if err := confineAndWrite(file); err != nil {
			fmt.Println(err)
		}
		return
	}
	if os.Getenv("RENOUNCE") != "" {
		err := Renounce()
		if err == nil {
			err = printState()
		}
		if err != nil {
			fmt.Println(err)
		}
		return
	}
	if file := os.Getenv("AS_USER"); file != "" {
		if err := readAsUser(file); err != nil {
			fmt.Println(err)
		}
		return
	}
	os.Exit(m.Run())
}

// readAsUser reads a file again and again, and prints when it may.
func readAsUser(file string) error {
	read := func(when string) {
		_, err := os.ReadFile(file)
		fmt.Println(when, !errors.Is(err, fs.ErrPermission))
	}
	read("given")
	if err := Suspend(); err != nil {
		return err
	}
	read("suspended")
	if err := TakeAll(); err != nil {
		return err
	}
	read("taken")
	err := AsUser(func() error {
		read("as user")
		other := make(chan bool)
		go func() {
			read("meanwhile on another thread")
			close(other)
		}()
		<-other
		return fs.ErrInvalid
	})
	if !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	read("afterwards")
	if err := Take(); err != nil {
		return err
	}
	if err := TakeAll(); err != nil {
		return err
	}
	read("dropped")
	return nil
}

// A user's files are read as that user, for a time or for good, and those of the process otherwise.
func TestAsUser(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "secret")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		who  *syscall.SysProcAttr
		want string
	}{
		{"root", nil, "given true\nsuspended true\ntaken true\nas user true\nmeanwhile on " +
			"another thread true\nafterwards true\ndropped true\n"},
		{"user with capabilities", &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: nobody, Gid: nobody},
			AmbientCaps: []uintptr{uintptr(cap.DAC_READ_SEARCH)},
		}, "given true\nsuspended false\ntaken true\nas user false\nmeanwhile on another thread " +
			"true\nafterwards true\ndropped false\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env, cmd.SysProcAttr = append(os.Environ(), "AS_USER="+file), c.who
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want {
				t.Errorf("%v:\n%s\nwant\n%s", err, out, c.want)
			}
		})
	}
}

func confineAndWrite(file string) error {
	if err := Confine([]string{file, file + ".old"}, cap.BPF, cap.PERFMON); err != nil {
		return err
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	return printState()
}

// printState prints as whom the threads of this process run, and with which capabilities.
func printState() error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	states := map[string]bool{} // of all threads: there is to be one
	for _, task := range tasks {
		status, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		if err != nil {
			return err
		}
		var state []string
		for line := range strings.Lines(string(status)) {
			if key, value, _ := strings.Cut(line, ":"); key == "Uid" || key == "Gid" ||
				strings.HasPrefix(key, "CapE") || strings.HasPrefix(key, "CapP") ||
				key == "CapInh" {
				state = append(state, strings.Join(strings.Fields(value), " "))
			}
		}
		states[strings.Join(state, ", ")] = true
	}
	for state := range states {
		fmt.Println(state)
	}
	return nil
}

// Nothing is left, and nobody who has called sudo goes on as root.
func TestRenounce(t *testing.T) {
	const nothing = "0000000000000000, 0000000000000000, 0000000000000000\n"
	for _, c := range []struct {
		name string
		sudo bool
		want string
	}{
		{"root", false, "0 0 0 0, 0 0 0 0, " + nothing},
		{"sudo", true, "65534 65534 65534 65534, 65534 65534 65534 65534, " + nothing},
	} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "RENOUNCE=1", "SUDO_UID=", "SUDO_GID=")
		if c.sudo {
			cmd.Env = append(cmd.Env, fmt.Sprintf("SUDO_UID=%d", nobody),
				fmt.Sprintf("SUDO_GID=%d", nobody))
		}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want {
			t.Errorf("%s: %v: %s, want %s", c.name, err, out, c.want)
		}
	}
}

// What is left is what was asked for, what writing takes, and the user who called sudo where that
// user may write.
func TestConfine(t *testing.T) {
	const (
		own     = "0000000000000000, 000000c000000000, 000000c000000000\n"
		writing = "0000000000000000, 000000c00000000a, 000000c00000000a\n"
		root    = "0 0 0 0, 0 0 0 0, "
		user    = "65534 65534 65534 65534, 65534 65534 65534 65534, "
	)
	for _, c := range []struct {
		name  string
		owner int // of the directory
		mode  os.FileMode
		there int // the owner of a file that is to be replaced; -1: there is none
		sudo  bool
		want  string
		file  int // its owner afterwards
	}{
		{"root at home", 0, 0o700, -1, false, root + own, 0},
		{"root elsewhere", nobody, 0o700, -1, false, root + writing, 0},
		{"sudo at home", nobody, 0o700, -1, true, user + own, nobody},
		{"sudo in root's directory", 0, 0o755, -1, true, root + own, 0},
		{"sudo in one for all", 0, 0o777 | os.ModeSticky, -1, true, user + own, nobody},
		{"sudo in one for all, over root's file", 0, 0o777 | os.ModeSticky, 0, true, root + own, 0},
		{"root in another's for all, over another's file", nobody, 0o777 | os.ModeSticky, nobody,
			false, root + writing, nobody},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "x.wpp")
			if c.there >= 0 {
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chown(file, c.there, -1); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chown(dir, c.owner, -1); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, c.mode); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), "CONFINE="+file, "SUDO_UID=", "SUDO_GID=")
			if c.sudo {
				cmd.Env = append(cmd.Env, fmt.Sprintf("SUDO_UID=%d", nobody),
					fmt.Sprintf("SUDO_GID=%d", nobody))
			}
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != c.want {
				t.Errorf("%v: %s, want %s", err, out, c.want)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := int(info.Sys().(*syscall.Stat_t).Uid); got != c.file || info.Mode() != 0o600 {
				t.Errorf("the file is %d's, mode %v; want %d's", got, info.Mode(), c.file)
			}
		})
	}
}
