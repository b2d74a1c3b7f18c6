// SPDX-License-Identifier: Apache-2.0

// Command pellucid-hook is pellucid hook for hosts that run a program at each event: it starts in a tenth of the time.
//
// It hands the event to a process of pellucid that stays for ten minutes after the last event. If none runs it starts one. Where the process does not answer, for whatever reason, it runs pellucid hook.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/hook/socket"
)

// lastWait is the time in which the host has an answer, whichever it is: it waits for ten seconds.
const lastWait = 9500 * time.Millisecond

// undecided is the answer of hosts to an event that was not decided, as in hook.Unchecked.
const undecided = `{"systemMessage":"pellucid: what the tools of this host return is not checked: pellucid hook did not answer in time, or cannot be run"}` + "\n"

func main() {
	began := time.Now()
	program, err := findProgram()
	if len(os.Args) != 2 || os.Args[1] == "" || os.Args[1][0] == '-' { // for people
		os.Exit(pass(program, err))
	}
	event, errRead := io.ReadAll(io.LimitReader(os.Stdin, socket.MaxEvent+1))
	_, errRest := io.Copy(io.Discard, os.Stdin) // a host whose write fails could stop
	err = errors.Join(err, errRead, errRest)
	var answer []byte
	if err == nil {
		answer, err = decide(program, event, began)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pellucid-hook:", err)
		answer = []byte(undecided)
	}
	if _, err := os.Stdout.Write(answer); err != nil {
		os.Exit(1)
	}
}

// findProgram returns the path of pellucid, which lies beside this program.
func findProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	name := "pellucid"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(filepath.Dir(self), name), nil
}

// pass runs pellucid hook with the arguments and streams of this process. It returns its exit code.
func pass(program string, err error) int {
	if err == nil {
		cmd := exec.Command(program, append([]string{"hook"}, os.Args[1:]...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = cmd.Run()
	}
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pellucid-hook:", err)
		return 1
	}
	return 0
}

// decide has the event answered: by the process that stays, or by pellucid hook.
func decide(program string, event []byte, began time.Time) ([]byte, error) {
	workDir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if answer, err := askResident(program, event, workDir, began); err == nil {
		return answer, nil
	}
	ctx, stop := context.WithDeadline(context.Background(), began.Add(lastWait))
	defer stop()
	cmd := exec.CommandContext(ctx, program, "hook", os.Args[1])
	cmd.Dir, cmd.Stdin, cmd.Stderr, cmd.WaitDelay = workDir, bytes.NewReader(event), os.Stderr, 100*time.Millisecond
	return cmd.Output()
}

// askResident asks the process that stays.
func askResident(program string, event []byte, workDir string, began time.Time) ([]byte, error) {
	folder, err := socket.Enter()
	if err != nil {
		return nil, err
	}
	name, apart, err := socketName(program, os.Environ(), workDir)
	if err != nil {
		return nil, err
	}
	answer, err := sendEvent(name, os.Args[1], event, began, func() error {
		cmd := exec.Command(program, "hook", "--serve", name)
		if cmd.Dir = folder; apart {
			cmd.Dir = workDir
		}
		log, err := openLog()
		if err != nil {
			return err
		}
		defer log.Close()
		cmd.Stderr = log
		detach(cmd)
		return cmd.Start()
	})
	return append(answer, '\n'), err
}

// openLog opens the file log of the working directory, where the process that stays writes what it has to say.
func openLog() (*os.File, error) {
	flag := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat("log"); err == nil && info.Size() > 1<<20 {
		flag |= os.O_TRUNC
	}
	return os.OpenFile("log", flag, 0o600)
}
