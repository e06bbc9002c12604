// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// watchTop reads quotas at each interval and shows them until ctx ends. A quota that isn't there at the start is an
// error; the loss of a quota later is reported, because it may come again.
func watchTop(ctx context.Context, env *environment, flags *topFlags, name string) error {
	reader, err := env.client()
	if err != nil {
		return err
	}
	quotas, _, err := readQuotas(ctx, reader, name)
	if err != nil {
		return err
	}
	shown := &screen{env: env}
	if err := shown.open(); err != nil {
		return err
	}
	ticker := env.clock.NewTicker(flags.interval)
	defer ticker.Stop()
	var lost error
	for ctx.Err() == nil {
		if err := shown.show(flags.text(env, quotas, name), lost); err != nil {
			return fmt.Errorf("showing the quotas: %w", err)
		}
		select {
		case <-ctx.Done():
			continue
		case <-ticker.C():
		}
		current, _, err := readQuotas(ctx, reader, name)
		if lost = err; err == nil || apierrors.IsNotFound(err) {
			quotas, lost = current, nil
		}
	}
	return shown.close()
}

// Control sequences for a terminal.
const (
	// enter shows the other screen, hides the cursor, and cuts lines that are too long; leave takes all that back.
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	// home goes to the upper left; endOfLine and endOfScreen clear the rest.
	home        = "\x1b[H"
	endOfLine   = "\x1b[K\n"
	endOfScreen = "\x1b[J"
)

// screen shows one state in place of the last. Without a terminal it writes each state below the last, and none twice.
type screen struct {
	env  *environment
	last string
	lost string
}

func (s *screen) open() error {
	if !s.env.onTerminal() {
		return nil
	}
	return s.env.print(enter)
}

// close leaves the last state to read.
func (s *screen) close() error {
	if !s.env.onTerminal() {
		return nil
	}
	return s.env.print(leave + s.last)
}

// show shows a state, and why it may be out of date.
func (s *screen) show(text string, lost error) error {
	if !s.env.onTerminal() {
		return s.append(text, lost)
	}
	s.last = text
	_, height := s.env.size()
	return s.env.print(frame(text, s.status(lost), height))
}

func (s *screen) status(lost error) string {
	now := s.env.clock.Now().Format("15:04:05")
	if lost != nil {
		return now + "  connection lost, trying again: " + lost.Error()
	}
	return now + "  Ctrl-C ends"
}

// append writes a state that is new, and reports a loss once.
func (s *screen) append(text string, lost error) error {
	reason := ""
	if lost != nil {
		reason = lost.Error()
	}
	if reason != "" && s.lost == "" {
		if _, err := fmt.Fprintln(s.env.streams.ErrOut, "connection lost, trying again:", reason); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	s.lost = reason
	if text == s.last || reason != "" {
		return nil
	}
	between := ""
	if s.last != "" {
		between = "\n"
	}
	s.last = text
	return s.env.print(between + text)
}

// frame is the output for one state: as many lines as the terminal has, the
// status below them. A height of 0 is unknown, and nothing is cut.
func frame(text, status string, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	// The status, a line above it, and the cursor's.
	if room := height - 3; height > 0 && len(lines) > room {
		room = max(0, room-1)
		lines = append(lines[:room:room], fmt.Sprintf("… %d more lines: make the window higher, or name a quota", len(lines)-room))
	}
	lines = append(lines, "", status)
	return home + strings.Join(lines, endOfLine) + endOfLine + endOfScreen
}
