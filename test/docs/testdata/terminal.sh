#!/usr/bin/env bash
# Compares docs/terminal.svg with what `kubectl crq top payments` prints on a
# terminal, but for its colours. What is reserved goes a moment later.
set -euo pipefail
printed() {
	env -u NO_COLOR TERM=xterm-256color script --quiet --return --command 'stty cols 96; kubectl crq top payments' /dev/null
}
plain() { # what is on the terminal, without colours and the ends of lines
	printed | sed -e 's/\x1b\[[0-9]*m//g' -e 's/\r$//' -e 's/ *$//' -e '/^$/d'
}
shown() {
	sed -n 's/^<text [^>]*>\(.*\)<\/text>$/\1/p' docs/terminal.svg | sed -e 's/<[^>]*>//g' -e 's/ *$//' -e 1d
}
for _ in $(seq 50); do
	diff <(shown) <(plain) >/dev/null && exit
	sleep 0.2
done
diff <(shown) <(plain)
