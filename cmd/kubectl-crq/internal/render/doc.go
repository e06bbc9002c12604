// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render puts quotas into text for people at a terminal: tables, bars and colours. Figures go in and text comes out;
// the terminal's properties and the time are arguments.
//
// Without a terminal there are no bars and no colours, each line of a table
// stands for itself, and lines come in an order that depends on names alone.
package render
