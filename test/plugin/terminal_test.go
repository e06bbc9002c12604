// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"golang.org/x/sys/unix"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

const escape = "\x1b["

// What is printed is polled with WithContext: Eventually(ctx, buffer) prints the
// buffer, while it is written, to see whether it is a duration.

// onTerminal starts kubectl on a terminal of this size. What it prints arrives in
// the buffer, with a carriage return in each line's end, and has all arrived once
// the channel is closed.
func onTerminal(
	ctx context.Context, env []string, columns, lines uint16, args ...string,
) (cmd *exec.Cmd, shown *gbytes.Buffer, all <-chan struct{}) {
	GinkgoHelper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(master.Close)
	Expect(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)).To(Succeed())
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	Expect(err).NotTo(HaveOccurred())
	Expect(unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: lines})).To(Succeed())
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	Expect(err).NotTo(HaveOccurred())

	cmd = kubectlCommand(ctx, cluster.Kubeconfig(), args...)
	// Whoever runs the tests may want no colours.
	cmd.Env = slices.DeleteFunc(cmd.Env, func(variable string) bool { return strings.HasPrefix(variable, "NO_COLOR=") })
	cmd.Env = append(append(cmd.Env, "TERM=xterm"), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	Expect(cmd.Start()).To(Succeed())
	Expect(terminal.Close()).To(Succeed())
	buffer := gbytes.NewBuffer()
	arrived := make(chan struct{})
	go func() {
		defer close(arrived)
		// It ends with an error, for the other end is closed.
		chunk := make([]byte, 4096)
		for {
			n, err := master.Read(chunk)
			_, _ = buffer.Write(chunk[:n])
			if err != nil {
				return
			}
		}
	}()
	return cmd, buffer, arrived
}

var _ = Describe("On a terminal, kubectl crq", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		namespace(ctx, "screen-shop", "team", "screen")
		enforced(ctx, builders.Quota("screen").Label("team", "screen").Hard("pods", "4").Hard("services", "0").Obj())
		mustCreate(ctx, builders.Pod("screen-shop", "a").Obj())
		uses(ctx, "screen", "pods: 1/4, services: 0/0")
	})

	DescribeTable("draws bars", func(ctx SpecContext, env []string, colours bool) {
		cmd, shown, all := onTerminal(ctx, env, 80, 24, "crq", "top", "screen")
		Expect(cmd.Wait()).To(Succeed())
		Eventually(ctx, all).Should(BeClosed())
		text := string(shown.Contents())
		Expect(text).To(ContainSubstring("████████"))
		if !colours {
			Expect(text).NotTo(ContainSubstring(escape))
			return
		}
		Expect(text).To(ContainSubstring(escape + "32m25%" + escape + "0m"))
		Expect(text).To(ContainSubstring(escape + "31m100%" + escape + "0m"))
	},
		Entry("in colours", nil, true),
		Entry("without colours, where NO_COLOR is set", []string{"NO_COLOR=1"}, false),
	)

	It("draws none on a terminal that can't", func(ctx SpecContext) {
		cmd, shown, all := onTerminal(ctx, []string{"TERM=dumb"}, 80, 24, "crq", "top", "screen")
		Expect(cmd.Wait()).To(Succeed())
		Eventually(ctx, all).Should(BeClosed())
		Expect(string(shown.Contents())).NotTo(Or(ContainSubstring(escape), ContainSubstring("█")))
	})

	It("shows every change in place of the last, and the last one when it ends", func(ctx SpecContext) {
		cmd, shown, _ := onTerminal(ctx, []string{"NO_COLOR=1"}, 80, 24, "crq", "top", "screen", "--watch", "--interval", "100ms")
		Eventually(shown).WithContext(ctx).Should(gbytes.Say(`25%.*\n(.*\n)*.*Ctrl-C ends`))
		mustCreate(ctx, builders.Pod("screen-shop", "b").Obj())
		Eventually(shown).WithContext(ctx).Should(gbytes.Say(`\x1b\[H(.*\n)+.*50%`))
		Expect(cmd.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(cmd.Wait()).To(Succeed())
		Eventually(shown).WithContext(ctx).Should(gbytes.Say(`\x1b\[\?1049lQUOTA(.*\n)+.*50%`))
	})
})

var _ = Describe("kubectl crq top --watch", Ordered, func() {
	It("prints each state as it comes, also after the API server was away", func(ctx SpecContext) {
		namespace(ctx, "pipe-shop", "team", "pipe")
		enforced(ctx, builders.Quota("pipe").Label("team", "pipe").Hard("pods", "4").Obj())
		uses(ctx, "pipe", "pods: 0/4")
		cmd := kubectlCommand(ctx, cluster.Kubeconfig(), "crq", "top", "pipe", "-w", "--interval", "100ms")
		printed := gbytes.NewBuffer()
		cmd.Stdout, cmd.Stderr = printed, GinkgoWriter
		Expect(cmd.Start()).To(Succeed())

		Eventually(printed).WithContext(ctx).Should(gbytes.Say(`pipe +pods +0 +0 +\S+ +4 +0%`))
		mustCreate(ctx, builders.Pod("pipe-shop", "a").Obj())
		Eventually(printed).WithContext(ctx).Should(gbytes.Say(`\n\nQUOTA(.*\n)+pipe +pods +1 +0 +\S+ +4 +25%`))

		Expect(cluster.RestartAPIServer()).To(Succeed())
		mustCreate(ctx, builders.Pod("pipe-shop", "b").Obj())
		Eventually(printed).WithContext(ctx).Should(gbytes.Say(`pipe +pods +2 +0 +\S+ +4 +50%`))

		Expect(cmd.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(cmd.Wait()).To(Succeed())
	})
})
