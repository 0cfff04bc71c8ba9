package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	"trainer/recipe"
)

// docs are the comments of structs and their fields, by recipe.Optimizer and recipe.Optimizer.LearningRate.
type docs map[string]string

// comments reads the Go files of the folders, tests left out.
func comments(dirs ...string) (docs, error) {
	out := docs{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				return nil, fmt.Errorf("reading comments: %w", err)
			}
			out.add(f)
		}
	}
	return out, nil
}

func (d docs) add(f *ast.File) {
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			t, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			s, ok := t.Type.(*ast.StructType)
			if !ok {
				continue
			}
			name := f.Name.Name + "." + t.Name.Name
			d[name] = plain(g.Doc, t.Doc)
			for _, field := range s.Fields.List {
				for _, n := range field.Names {
					d[name+"."+n.Name] = plain(field.Doc, field.Comment)
				}
			}
		}
	}
}

func plain(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			return text
		}
	}
	return ""
}

// of is the comment of a key, which opens with the key's name where the comment opens with the field's.
func (d docs) of(k *recipe.Key) string {
	text := d[k.Field]
	field := k.Field[strings.LastIndexByte(k.Field, '.')+1:]
	if rest, ok := strings.CutPrefix(text, field); ok && (rest == "" || !isLetter(rest[0])) {
		return k.Name + rest
	}
	return text
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
