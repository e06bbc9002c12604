// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"
)

// action is a kind of step.
type action int

// The order is that in which an undisturbed cluster prefers them.
const (
	startReplica action = iota
	elect
	learnNamespaces
	loadConfiguration
	takeRead
	takeProof
	goOnRequest
	answerRequest
	noticeLeft
	tick
	replyCall
	goOnEdit
	deliverWatch
	goOnTask
	beginTask
	goOnWriting
	beginWriting
	persistObject
	persistEdit
	dropOrphan
	// The next are steps of clients.
	beginRequest
	deleteObject
	growUnasked
	beginUnasked
	label
	createNamespace
	deleteNamespace
	beginEdit
	createQuota
	deleteQuota
	// The next are faults.
	failRead
	failProof
	loseAnswer
	leave
	failRequest
	effectCall
	loseCall
	forgetCall
	relist
	takeOrphan
	loseTask
	unhearTask
	loseWriting
	crash
	depose
	stopServing
	loseLedger
	deleteConfiguration
	failEdit
	backUp
	restoreBackup
	advance
	actions
)

var actionNames = [actions]string{
	"start", "elect", "learn namespaces", "load configuration", "read", "prove", "go on", "answer", "notice", "tick", "reply", "go on with edit",
	"watch", "go on with task", "reconcile", "go on writing", "configure", "persist", "persist edit", "drop orphan",
	"begin", "delete", "grow unasked", "begin unasked", "label", "create namespace", "delete namespace", "edit", "create quota", "delete quota",
	"fail read", "fail proof", "lose answer", "leave", "fail", "take effect", "lose call", "forget call", "relist", "take orphan",
	"lose task call", "lose task reply", "lose configuration", "crash", "depose", "stop or begin to serve", "lose ledger",
	"delete configuration", "fail edit", "back up", "restore", "advance",
}

// step is one thing that happens.
type step struct {
	action  action
	a, b, c int
	// after is how many milliseconds pass after it.
	after int
}

func (s step) same(other step) bool {
	return s.action == other.action && s.a == other.a && s.b == other.b && s.c == other.c
}

func (s step) String() string {
	return fmt.Sprintf("%s %d %d %d", actionNames[s.action], s.a, s.b, s.c)
}

// do makes a step that is enabled.
func (w *world) do(s step) {
	w.counts.steps++
	w.counts.by[s.action]++
	w.stepping = uint64(s.action)<<48 | uint64(s.a)<<32 | uint64(s.b)<<16 | uint64(s.c)
	switch {
	case s.action < beginRequest:
		w.progress(s)
	case s.action < failRead:
		w.client(s)
	default:
		w.disturb(s)
	}
	if w.trace != nil {
		w.trace.note(w, s)
	}
	if s.action == tick || s.action == advance {
		w.checkReady()
	}
	if s.after > 0 {
		w.pass(time.Duration(s.after) * time.Millisecond)
	}
}

func (w *world) progress(s step) {
	switch s.action {
	case startReplica:
		w.replicas[s.a].start()
	case elect:
		w.leader = s.a
		w.replicas[s.a].lead()
	case learnNamespaces:
		w.knownNamespaces++
	case loadConfiguration:
		w.loaded++
	case takeRead:
		w.request(s.a).takeRead(false)
	case takeProof:
		w.request(s.a).takeProof(false)
	case goOnRequest:
		w.request(s.a).goOn()
	case answerRequest:
		w.request(s.a).answered()
	case noticeLeft:
		w.request(s.a).giveUp()
	case tick:
		w.driver(s).tick()
	case replyCall:
		w.replyCall(w.driver(s))
	default:
		w.progressBehind(s)
	}
}

func (w *world) progressBehind(s step) {
	switch s.action {
	case goOnEdit:
		w.edit(s.a).goOn()
	case deliverWatch:
		w.replicas[s.a].deliver(kind(s.b))
	case goOnTask:
		w.replicas[s.a].counter.goOn(s.b, succeeds)
	case beginTask:
		w.replicas[s.a].counter.reconcile(s.b)
	case goOnWriting:
		w.replicas[s.a].counter.goOnWriting(succeeds)
	case beginWriting:
		w.replicas[s.a].counter.beginWriting()
	case persistObject:
		w.request(s.a).persist()
	case persistEdit:
		w.edit(s.a).persist()
	case dropOrphan:
		w.orphans = append(w.orphans[:s.a:s.a], w.orphans[s.a+1:]...)
	default:
	}
}

func (w *world) client(s step) {
	switch s.action {
	case beginRequest, beginUnasked:
		w.begin(s)
	case deleteObject:
		w.deleteObject(place{s.a, s.b, s.c})
	case growUnasked:
		w.growUnasked(place{s.a, s.b, s.c})
	case label, createNamespace:
		w.setNamespace(s.a, s.b)
	case deleteNamespace:
		w.deleteNamespace(s.a)
	case beginEdit:
		w.beginEdit(s)
	case createQuota:
		w.createQuota(s.a, w.hardOf(s.b), w.surgeOf(s.b), w.shape.modes && s.b%2 == 1)
	case deleteQuota:
		w.deleteQuota(s.a)
	default:
	}
}

func (w *world) beginEdit(s step) {
	edit := &edit{world: w, id: s.a, quota: s.b % maxQuotas, replica: w.replicas[s.b/maxQuotas], hard: w.hardOf(s.c), begun: w.now}
	if edit.surge = w.surgeOf(s.c); w.shape.surges && s.c/2%2 == 0 { // the surge alone
		edit.hard = w.quotas.newest[edit.quota].hard
	}
	if w.shape.modes {
		edit.audits = (s.a^s.c)&1 == 1
		if s.c%4 == 0 { // the mode alone
			edit.hard, edit.surge = w.quotas.newest[edit.quota].hard, w.quotas.newest[edit.quota].surge
		}
	}
	w.edits = append(w.edits, edit)
	edit.ask()
}

func (w *world) disturb(s step) {
	switch s.action {
	case failRead:
		w.request(s.a).takeRead(true)
	case failProof:
		w.request(s.a).takeProof(true)
	case loseAnswer:
		w.request(s.a).stage = stageNone
		w.request(s.a).fail("the answer was lost")
	case leave:
		w.request(s.a).fail("the caller left")
	case failRequest:
		w.request(s.a).status = failed
	case effectCall:
		w.take(w.driver(s).call)
	case loseCall, forgetCall:
		w.loseCall(w.driver(s), s.action == forgetCall)
	case relist:
		w.replicas[s.a].relist(kind(s.b), s.c)
	case takeOrphan:
		call := w.orphans[s.a]
		w.orphans = append(w.orphans[:s.a:s.a], w.orphans[s.a+1:]...)
		w.take(call)
	case loseTask:
		w.replicas[s.a].counter.goOn(s.b, vanishes)
	case unhearTask:
		w.replicas[s.a].counter.goOn(s.b, unheard)
	case loseWriting:
		w.replicas[s.a].counter.goOnWriting(vanishes)
	default:
		w.disturbCluster(s)
	}
}

func (w *world) disturbCluster(s step) {
	switch s.action {
	case crash:
		w.replicas[s.a].crash()
	case depose:
		w.leader = s.a
		w.replicas[s.a].lead()
	case stopServing:
		w.unserved = !w.unserved
	case loseLedger:
		if s.b == 1 {
			w.editLedger(s.a)
			return
		}
		w.deleteLedger(s.a, w.ledgers.newest[s.a].snapshot.Version)
	case deleteConfiguration:
		w.writeConfiguration(w.newestConfiguration().version, configuration{deleted: true})
	case failEdit:
		w.edit(s.a).stage = editOver
	case backUp:
		w.backUp()
	case restoreBackup:
		w.restore(s.a == 1)
	case advance:
		w.pass(time.Duration(s.a) * time.Millisecond)
	default:
	}
}

func (w *world) request(id int) *request {
	for _, request := range w.requests {
		if request.id == id {
			return request
		}
	}
	return nil
}

func (w *world) edit(id int) *edit {
	for _, edit := range w.edits {
		if edit.id == id {
			return edit
		}
	}
	return nil
}

func (w *world) driver(s step) *driver {
	for _, driver := range w.replicas[s.a].all() {
		if driver.serial == s.b {
			return driver
		}
	}
	return nil
}

func (w *world) replyCall(d *driver) {
	call := d.call
	if !call.done {
		w.take(call)
	}
	d.deliver(call.result)
}

// loseCall loses the reply to a call. The call may have taken effect, or may do so later;
// if it is forgotten, it never does.
func (w *world) loseCall(d *driver, forgotten bool) {
	call := d.call
	if !forgotten {
		w.orphan(call)
	}
	d.deliver(call.lost())
}

// pass lets time pass. A caller that has waited for too long gives up.
func (w *world) pass(by time.Duration) {
	before := w.now
	w.now = w.now.Add(by)
	for _, request := range w.requests {
		switch waited := w.now.Sub(request.begun); {
		case request.status == asking && !request.left && waited > webhookTimeout:
			if w.shape.calm {
				w.failf("request %d was not answered in time", request.id)
			}
			request.fail("it took too long")
		case request.status == admitted && waited > requestTimeout:
			request.status = failed
		}
	}
	for _, edit := range w.edits {
		if edit.stage != editOver && w.now.Sub(edit.begun) > webhookTimeout {
			edit.stage = editOver
		}
	}
	w.forget()
	if w.now.Unix() == before.Unix() {
		return
	}
	for _, replica := range w.replicas {
		if replica.counter != nil {
			replica.counter.advance()
		}
	}
}

// forget drops requests, edits and calls that are over.
func (w *world) forget() {
	kept := w.requests[:0]
	for _, request := range w.requests {
		if request.isOpen() || request.stage != stageNone {
			kept = append(kept, request)
		}
	}
	w.requests = kept
	edits := w.edits[:0]
	for _, edit := range w.edits {
		if edit.stage != editOver {
			edits = append(edits, edit)
		}
	}
	w.edits = edits
	orphans := w.orphans[:0]
	for _, call := range w.orphans {
		if w.now.Sub(call.began) < requestTimeout {
			orphans = append(orphans, call)
		}
	}
	w.orphans = orphans
}
