// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// checkLinks returns an error for each relative link of a page, by its path in a
// repository, that leads nowhere. Links to elsewhere are not followed.
func checkLinks(repository fs.FS, page string) error {
	source, err := fs.ReadFile(repository, page)
	if err != nil {
		return err
	}
	var problems []error
	for _, link := range links(source) {
		if err := checkLink(repository, page, link); err != nil {
			problems = append(problems, fmt.Errorf("%s: %q: %w", page, link, err))
		}
	}
	return errors.Join(problems...)
}

func checkLink(repository fs.FS, page, link string) error {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return nil
	}
	file, anchor, hasAnchor := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = path.Join(path.Dir(page), file)
	}
	if _, err := fs.Stat(repository, target); err != nil {
		return err
	}
	if !hasAnchor {
		return nil
	}
	source, err := fs.ReadFile(repository, target)
	if err != nil {
		return err
	}
	if !anchors(source)[anchor] {
		return fmt.Errorf("%s has no heading of anchor %q", target, anchor)
	}
	return nil
}

// links returns where the links and pictures of a page lead.
func links(page []byte) []string {
	var links []string
	visit(page, func(node ast.Node) {
		switch node := node.(type) {
		case *ast.Link:
			links = append(links, string(node.Destination))
		case *ast.Image:
			links = append(links, string(node.Destination))
		}
	})
	return links
}

// anchors returns what a page's headings can be linked by, as GitHub names them: a
// heading of the same text as an earlier one gets a number.
func anchors(page []byte) map[string]bool {
	found := map[string]bool{}
	visit(page, func(node ast.Node) {
		if _, ok := node.(*ast.Heading); !ok {
			return
		}
		name := anchor(plain(node, page))
		for unique, n := name, 1; ; n++ {
			if !found[unique] {
				found[unique] = true
				return
			}
			unique = fmt.Sprintf("%s-%d", name, n)
		}
	})
	return found
}

// anchor is in lower case, with letters, digits, hyphens and underscores alone, and
// a hyphen for each blank.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}

// plain is the text of a node without its markup.
func plain(node ast.Node, page []byte) string {
	var text strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		switch child := child.(type) {
		case *ast.Text:
			text.Write(child.Value(page))
		default:
			text.WriteString(plain(child, page))
		}
	}
	return text.String()
}

func visit(page []byte, see func(ast.Node)) {
	parser := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser()
	walk := func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			see(node)
		}
		return ast.WalkContinue, nil
	}
	if err := ast.Walk(parser.Parse(text.NewReader(page)), walk); err != nil {
		panic(err) // walk returns none
	}
}
