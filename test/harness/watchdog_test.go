// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os/exec"
	"sync"
	"testing"
)

// A process that starts while a script is written has the open file until it
// becomes another program, and no file that is open for writing can be run.
func TestAScriptRunsAtOnceWhileOtherProcessesStart(t *testing.T) {
	dog := newProcessCluster(t).watchdog
	done := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if err := exec.Command("/bin/true").Run(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	t.Cleanup(func() {
		close(done)
		others.Wait()
	})
	for i := range 100 {
		script, err := dog.script(fmt.Sprint("script-", i), "/bin/true")
		if err != nil {
			t.Fatal(err)
		}
		if err := exec.CommandContext(t.Context(), script).Run(); err != nil {
			t.Errorf("the script %d of 100: %s", i, err)
		}
	}
}
