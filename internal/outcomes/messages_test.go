// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package outcomes

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// imperatives are the verbs of next steps. One must begin a clause, possibly after a condition.
var imperatives = regexp.MustCompile(`(?:^|[;:,(.] |[;:,] (?:and|or|then) |so, |lasts, |longer, )` +
	`(did you mean|don't|ask|begin|check|correct|create|delete|exclude|exempt|expand|find|give|have|install|label|look|make|mend|move|name|put|raise|read|remove|rename|render|run|save|see|select|set|` +
	`say|state|take|try|use|wait|write)\b`)

// names are the names of the rows, in the order of the table.
func names(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("messages*.go")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	var names []string
	for _, file := range slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") }) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.VAR {
				continue
			}
			for _, spec := range general.Specs {
				value := spec.(*ast.ValueSpec)
				for i, name := range value.Names {
					if call, ok := valueOf(value, i).(*ast.CallExpr); ok && slices.Contains([]string{"row", "part"}, fmt.Sprint(call.Fun)) {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	if len(names) != len(table) {
		t.Fatalf("%d names of %d rows: declare each row in a var of its own", len(names), len(table))
	}
	return names
}

func valueOf(spec *ast.ValueSpec, i int) ast.Expr {
	if i < len(spec.Values) {
		return spec.Values[i]
	}
	return nil
}

func TestEachMessageHasANextStep(t *testing.T) {
	for i, name := range names(t) {
		switch message := table[i]; {
		case message.Next == "" && message.None == "":
			t.Errorf("%s, %q: want a next step, or the reason for none", name, message.Cause)
		case message.Next != "" && message.None != "":
			t.Errorf("%s, %q: want either a next step or a reason for none", name, message.Cause)
		case message.Next != "" && !imperatives.MatchString(strings.TrimLeft(message.Next, ";:,. ")):
			t.Errorf("%s, %q: want an imperative in the next step", name, message.Next)
		}
	}
}

func TestNoMessageIsInTheTableTwice(t *testing.T) {
	seen := map[string]string{}
	for i, name := range names(t) {
		message := table[i]
		text := strings.Join([]string{string(message.Kind), message.Cause, message.Next}, "|")
		// Rows that are nothing but another message, and the next step for it.
		if before, twice := seen[text]; twice && strings.Trim(message.Cause, "%s") != "" {
			t.Errorf("%s and %s: both are %q", before, name, message.Cause+message.Next)
		}
		seen[text] = name
		words := slices.DeleteFunc(strings.Fields(message.Cause+message.Next), func(word string) bool { return strings.HasPrefix(word, "%") })
		if !slices.Equal(words, slices.Compact(slices.Clone(words))) {
			t.Errorf("%s: a word stands twice in %q", name, message.Cause+message.Next)
		}
	}
}

// The parts of an output: each sentence of each is said once.
func TestNoNextStepIsSaidTwiceInOneMessage(t *testing.T) {
	cause := errors.New("no answer")
	for name, text := range map[string]string{
		"an error that has a next step": Advise(fmt.Errorf("waiting: %w", StillStarting.Err())).Error(),
		"one that has none":             Advise(cause).Error(),
		"one that is advised twice":     Advise(Advise(cause)).Error(),
		"a quota whose use is unknown":  UnknownUse.Text("team", "pods", NotCountedYet.Text()),
		"one that only warns":           OnlyWarnsUnknown.Text(UnknownUse.Text("team", "pods", NotCountedYet.Text())),
		"all that is enforced":          strings.Join([]string{EveryRequest.Text(), CalledElsewhere.Text(), WhileDown.Text(AdmitsBySpec.Text())}, "; "),
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, clause := range regexp.MustCompile(`[;:(] `).Split(text, -1) {
				if seen[clause] {
					t.Errorf("%q stands twice in %q", clause, text)
				}
				seen[clause] = true
			}
		})
	}
	if err := Advise(cause); !errors.Is(err, cause) {
		t.Errorf("%v doesn't wrap its cause", err)
	}
}

func TestAMessageKeepsItsNextStepWhenItIsShortened(t *testing.T) {
	for name, test := range map[string]struct {
		most int
		want string
	}{
		"it fits":        {most: 100, want: "refused pods: full" + inAMoment},
		"it is too long": {most: 34, want: "refused …" + inAMoment},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&Message{Cause: "refused %s: %s", Next: inAMoment}).Within(test.most, "pods", "full")
			if got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// root is the module's directory.
const root = "../.."

// place is a package or a file, and the kind of text in it.
type place struct {
	path string
	// errors: its errors are judged, but no other text.
	errors bool
	// unadvised: its answers need no next step. They are judged in all other places.
	unadvised bool
	why       string
}

// exclusions are all places whose texts are not judged, each with the reason. A text in any other place must come from the
// table.
var exclusions = []place{
	{path: "internal/outcomes", why: "the table"},
	{path: "main.go", why: "the program's start: text for its log"},
	{path: "api/v1", why: "the API: its constants are stored, and read by other programs"},
	{path: "cmd/kubectl-crq/internal/conversion/kinds.go", errors: true, why: "lists of fields"},
	{path: "cmd/kubectl-crq/internal/conversion/unseen.go", errors: true, why: "patterns, and the names of tools"},
	{path: "cmd/kubectl-crq/internal/conversion/texts.go", errors: true, why: "notes on fields that are left, in a table of their own, and names of types"},
	{path: "cmd/kubectl-crq", errors: true, why: "the plugin's answers, and help: results that a user asked for, whose remedies why and reclaim add"},
	{path: "cmd/kubectl-crq/internal/reading", errors: true, why: "what it reads in others' messages, and notes of answers"},
	{path: "cmd/kubectl-crq/internal/render", errors: true, why: "headings and sentences of answers"},
	{path: "controllers/wake", why: "its errors are for the log"},
	{path: "internal/manager/probe.go", unadvised: true, why: "answers to the operator's own probe"},
	{path: "internal/manager", why: "flags, and errors that end the operator, for the log"},
	{path: "internal/metrics", why: "help texts of metrics"},
	{path: "internal/serving", why: "errors for the log, and readiness for the kubelet"},
	{path: "internal/waiting", why: "figures"},
	{path: "internal/fitting", why: "notes and causes: webhooks/workloads says them in NotJudged, and the plugin in its answers"},
	{path: "internal/webhookconfig", why: "names and the probe's marks, which the operator reads itself"},
	{path: "internal/evaluation/limitedfile.go", why: "a file that the operator reads at its start: for its log"},
}

func exclusionOf(path string) *place {
	for i := range exclusions {
		if path == exclusions[i].path || filepath.ToSlash(filepath.Dir(path)) == exclusions[i].path {
			return &exclusions[i]
		}
	}
	return nil
}

// prose is text of more words than one.
var prose = regexp.MustCompile(`[A-Za-z']{2,}[,;:.]? [a-z']{2,}`)

// isWrap reports whether a format only names the failed step: the rest of the error has the cause, and package main of the
// plugin, or Advise, the next step.
var isWrap = regexp.MustCompile(`(?:: )?%w$`).MatchString

// finding is a text outside of the table.
type finding struct{ position, text string }

// scan finds texts in a file that people may read.
func scan(files *token.FileSet, file *ast.File, errorsOnly bool) []finding {
	var found []finding
	report := func(node ast.Node, text string) {
		found = append(found, finding{files.Position(node.Pos()).String(), text})
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			return node.Tag == nil
		case *ast.CallExpr:
			return scanCall(node, errorsOnly, report)
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING && !errorsOnly && prose.MatchString(text) {
				report(node, text)
			}
		}
		return true
	})
	return found
}

// unadvised is found where a request is answered by an error.
const unadvised = "an answer without outcomes.Advise"

// scanCall judges a call, and reports whether its arguments must be judged.
func scanCall(call *ast.CallExpr, errorsOnly bool, report func(ast.Node, string)) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	of, _ := selector.X.(*ast.Ident)
	switch name := selector.Sel.Name; {
	case name == "Info" || name == "Error" && len(call.Args) > 1:
		return false // the log
	case name == "Errored" && isOf(of, "admission"):
		if advised, ok := call.Args[1].(*ast.CallExpr); !ok || !isCallOf(advised, "outcomes", "Advise") {
			report(call, unadvised)
		}
		return true
	case name == "New" && isOf(of, "errors"), name == "Errorf" && isOf(of, "fmt"):
		if !errorsOnly {
			return false // a cause, which is an argument of a message: a literal can reach people by Errored alone
		}
		text := ""
		if literal, ok := call.Args[0].(*ast.BasicLit); ok {
			text, _ = strconv.Unquote(literal.Value)
		}
		if !isWrap(text) {
			report(call, fmt.Sprintf("an error of its own: %q", text))
		}
		return false
	}
	return true
}

func isOf(of *ast.Ident, name string) bool { return of != nil && of.Name == name }

func isCallOf(call *ast.CallExpr, of, name string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	ident, _ := selector.X.(*ast.Ident)
	return isOf(ident, of)
}

// sources calls visit with each source file of the operator and the plugin, by its path in the module.
func sources(t *testing.T, visit func(path string, files *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, top := range []string{"main.go", "api", "cmd", "controllers", "internal", "webhooks"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err == nil {
				visit(strings.TrimPrefix(filepath.ToSlash(path), root+"/"), files, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestEachMessageComesFromTheTable(t *testing.T) {
	used := map[string]bool{}
	sources(t, func(path string, files *token.FileSet, file *ast.File) {
		excluded := exclusionOf(path)
		if excluded != nil {
			used[excluded.path] = true
		}
		for _, found := range scan(files, file, excluded != nil) {
			if excluded != nil && (!excluded.errors && found.text != unadvised || excluded.unadvised) {
				continue
			}
			if noMessages[found.text] == "" {
				t.Errorf("%s: %s: take it from the table of package outcomes", found.position, found.text)
			}
		}
	})
	for _, exclusion := range exclusions {
		if !used[exclusion.path] {
			t.Errorf("%s: nothing there is excluded", exclusion.path)
		}
	}
}

// noMessages are texts that look like messages, each with its use.
var noMessages = map[string]string{
	`an error of its own: "no"`:              "never printed",
	`an error of its own: "%T is no list"`:   "a defect, which Unexplained says",
	`an error of its own: "%T is no object"`: "a defect, which Unexplained says",
	"at least ":                              "a number",
	"at most ":                               "a number",
	"failed calling webhook":                 "a word of the API server's",
	"failed quota: ":                         "a word of Kubernetes'",
	"failed quota: %s: %v":                   "a word of Kubernetes'",
	"not carried over":                       "a heading of comments",
	"not converted":                          "a heading of comments",
	"something without a kind":               "the name of an object",
	"no answer":                              "a cause",
	"the API version":                        "the subject of a cause",
	"the ResourceQuotas of namespace":        "the object of a cause",
	"the list of":                            "the object of a cause",
	"the namespace":                          "the subject of a cause",
	"the object's UID":                       "the subject of a cause",
	"the request's UID":                      "the subject of a cause",
	"the resourceVersion":                    "the subject of a cause",
	"the version of":                         "the object of a cause",
	"what the cluster serves":                "the object of a cause",
}

// Arguments of a format are checked by vet for literals only.
func TestEachMessageGetsItsArguments(t *testing.T) {
	verbsOf, usedBy := map[string]int{}, map[string]int{}
	for i, name := range names(t) {
		verbsOf[name] = arguments(table[i].Cause + table[i].Next)
	}
	sources(t, func(_ string, files *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok && isOf(identOf(selector.X), "outcomes") {
				usedBy[selector.Sel.Name]++
			}
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			message, ok := method.X.(*ast.SelectorExpr)
			if !ok || !isOf(identOf(message.X), "outcomes") || call.Ellipsis.IsValid() {
				return true
			}
			want, ok := verbsOf[message.Sel.Name]
			got := len(call.Args)
			if method.Sel.Name == "Within" {
				got--
			}
			if ok && got != want {
				t.Errorf("%s: %s takes %d arguments, got %d", files.Position(call.Pos()), message.Sel.Name, want, got)
			}
			return true
		})
	})
	for name := range verbsOf {
		if usedBy[name] == 0 && name != "UndecidedRequest" {
			t.Errorf("%s is said nowhere: remove it", name)
		}
	}
}

// arguments counts the arguments of a format, which may name them by their numbers.
func arguments(format string) int {
	most := 0
	for _, match := range regexp.MustCompile(`%\[(\d)\]`).FindAllStringSubmatch(format, -1) {
		number, _ := strconv.Atoi(match[1])
		most = max(most, number)
	}
	if most > 0 {
		return most
	}
	return verbs(format)
}

func identOf(expression ast.Expr) *ast.Ident {
	ident, _ := expression.(*ast.Ident)
	return ident
}
