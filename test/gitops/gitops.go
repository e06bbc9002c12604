// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitops shows what Flux and Argo CD make of our objects: Flux by the
// library that it uses itself, Argo CD by the scripts under config/argocd, with
// the libraries that they have there. Its own tests are for objects that are written by
// hand; package e2e has those of an operator.
package gitops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Health is what Argo CD shows of an object.
type Health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// Flux returns the status that Flux waits for, and its message.
func Flux(object *unstructured.Unstructured) (status.Status, string, error) {
	result, err := status.Compute(object)
	if err != nil {
		return "", "", fmt.Errorf("computing the status of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return result.Status, result.Message, nil
}

// scriptTimeout is Argo CD's.
const scriptTimeout = time.Second

// ArgoCD runs a health script for an object. Argo CD itself runs none for what is being deleted.
func ArgoCD(ctx context.Context, script string, object *unstructured.Unstructured) (Health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	ctx, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()
	state.SetContext(ctx)
	// A script of the ConfigMap gets no library for strings.
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		call := lua.P{Fn: state.NewFunction(open), Protect: true}
		if err := state.CallByParam(call, lua.LString(name)); err != nil {
			return Health{}, fmt.Errorf("opening the library %s: %w", name, err)
		}
	}
	state.SetGlobal("obj", luaValue(state, object.Object))
	if err := state.DoString(script); err != nil {
		return Health{}, fmt.Errorf("running the script: %w", err)
	}
	returned, isTable := state.Get(-1).(*lua.LTable)
	if !isTable {
		return Health{}, errors.New("the script returns no table")
	}
	return Health{
		Status: lua.LVAsString(returned.RawGetString("status")), Message: lua.LVAsString(returned.RawGetString("message")),
	}, nil
}

// luaValue returns a value of an object as scripts see it.
func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		table := state.CreateTable(len(value), 0)
		for _, item := range value {
			table.Append(luaValue(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(value))
		for name, item := range value {
			table.RawSetString(name, luaValue(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}
