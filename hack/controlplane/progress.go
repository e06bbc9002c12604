// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"
)

// showProgress prints what show returns and the time since, now and then,
// until the returned function is called with how it ended.
func showProgress(show func() string) (finish func(err error)) {
	terminal := isTerminal(os.Stdout)
	interval, begin, end := 15*time.Second, "", "\n"
	if terminal {
		interval, begin, end = 500*time.Millisecond, "\r", "   "
	}
	start := time.Now()
	line := func(end string) {
		fmt.Printf("%s  %s, %s%s", begin, show(), time.Since(start).Round(time.Second), end)
	}
	done, finished := make(chan string), make(chan struct{})
	go func() {
		defer close(finished)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case word := <-done:
				line(", " + word + "      \n")
				return
			case <-ticker.C:
				line(end)
			}
		}
	}()
	return func(err error) {
		word := "done"
		if err != nil {
			word = "failed"
		}
		done <- word
		<-finished
	}
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
