// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

// choice is a step that can be made, and how likely it is.
type choice struct {
	step   step
	weight int
}

// chooser gathers the steps that can happen next.
type chooser struct {
	world   *world
	choices []choice
	total   int
	weights *[actions]int
}

func (c *chooser) add(action action, a, b, d int) {
	if weight := c.weights[action]; weight > 0 {
		c.choices = append(c.choices, choice{step{action: action, a: a, b: b, c: d}, weight})
		c.total += weight
	}
}

func (c *chooser) reset(world *world, weights *[actions]int) {
	c.world, c.weights, c.choices, c.total = world, weights, c.choices[:0], 0
}

// progress gathers the steps that a cluster makes by itself.
func (c *chooser) progress() {
	w := c.world
	for _, request := range w.requests {
		c.request(request)
	}
	for id, replica := range w.replicas {
		if !replica.alive {
			c.add(startReplica, id, 0, 0)
			continue
		}
		if w.leader < 0 {
			c.add(elect, id, 0, 0)
		}
		c.replica(replica)
	}
	for _, edit := range w.edits {
		if edit.isReady() {
			c.add(goOnEdit, edit.id, 0, 0)
		}
		if edit.stage == editAllowed {
			c.add(persistEdit, edit.id, 0, 0)
			c.add(failEdit, edit.id, 0, 0)
		}
	}
	if w.knownNamespaces < len(w.namespaces.changes) {
		c.add(learnNamespaces, 0, 0, 0)
	}
	if w.loaded+1 < len(w.configurations) {
		c.add(loadConfiguration, 0, 0, 0)
	}
	for at := range w.orphans {
		c.add(dropOrphan, at, 0, 0)
		c.add(takeOrphan, at, 0, 0)
	}
}

func (c *chooser) request(r *request) {
	switch {
	case r.stage != stageNone && r.left:
		c.add(noticeLeft, r.id, 0, 0)
	case r.isReading():
		c.add(takeRead, r.id, 0, 0)
		c.add(failRead, r.id, 0, 0)
	case r.isProving():
		c.add(takeProof, r.id, 0, 0)
		c.add(failProof, r.id, 0, 0)
	case r.stage == stageReply:
		c.add(answerRequest, r.id, 0, 0)
		c.add(loseAnswer, r.id, 0, 0)
	}
	if r.isReady() {
		c.add(goOnRequest, r.id, 0, 0)
	}
	if r.status == asking && !r.left {
		c.add(leave, r.id, 0, 0)
	}
	if r.status == admitted {
		c.add(persistObject, r.id, 0, 0)
		c.add(failRequest, r.id, 0, 0)
	}
}

func (c *chooser) replica(r *replica) {
	c.add(crash, r.id, 0, 0)
	if c.world.leader >= 0 && r.counter == nil {
		c.add(depose, r.id, 0, 0)
	}
	for _, driver := range r.all() {
		if driver.isDue() {
			c.add(tick, r.id, driver.serial, 0)
			c.rarely(tick, c.world.shape.sluggish[r.id])
		}
		if driver.call == nil {
			continue
		}
		c.add(replyCall, r.id, driver.serial, 0)
		if !driver.call.done {
			c.add(effectCall, r.id, driver.serial, 0)
			c.add(forgetCall, r.id, driver.serial, 0)
		}
		c.add(loseCall, r.id, driver.serial, 0)
	}
	for kind := range kinds {
		if r.pending(kind) {
			c.watch(r, kind)
		}
	}
	if r.counter != nil {
		c.counter(r.counter)
	}
}

// rarely makes the choice that was just added an unlikely one, if it is so.
func (c *chooser) rarely(action action, ok bool) {
	if weight := c.weights[action]; weight > 1 && ok {
		c.choices[len(c.choices)-1].weight = 1
		c.total -= weight - 1
	}
}

func (c *chooser) watch(r *replica, kind kind) {
	c.add(deliverWatch, r.id, int(kind), 0)
	c.rarely(deliverWatch, c.world.shape.slow[r.id][kind])
	// A list is of the present, or of a moment before it.
	at, newest := r.streams[kind].position, c.world.length(kind)
	for back := range 3 {
		if newest-back > at || back == 0 {
			c.add(relist, r.id, int(kind), newest-back)
		}
	}
}

func (c *chooser) counter(counter *counter) {
	id := counter.replica.id
	if !counter.replica.synced() || !counter.replica.streams[watchLedgers].listed {
		return
	}
	for q, task := range counter.tasks {
		if task != nil && task.isReady() {
			c.add(goOnTask, id, q, 0)
			c.add(loseTask, id, q, 0)
			c.add(unhearTask, id, q, 0)
		}
		if counter.isDue(q) {
			c.add(beginTask, id, q, 0)
		}
	}
	switch {
	case counter.write != nil && counter.write.isReady():
		c.add(goOnWriting, id, 0, 0)
		c.add(loseWriting, id, 0, 0)
	case counter.write == nil && !counter.isUpToDate():
		c.add(beginWriting, id, 0, 0)
	}
}

// clients gathers the steps of clients, administrators and others.
func (c *chooser) clients(id, hard, request int) {
	w := c.world
	for n, namespace := range w.namespaces.newest {
		if namespace == nil {
			c.add(createNamespace, n, hard%len(w.labels), 0)
			continue
		}
		c.add(label, n, namespace.labels^(1<<(hard%maxQuotas)), 0)
		c.add(label, n, hard%len(w.labels), 0)
		c.add(deleteNamespace, n, 0, 0)
	}
	if len(w.requests) < w.shape.open {
		replaces := hard / hards % 2 * ways * len(w.replicas)
		c.add(beginRequest, id, request%(maxSources*maxNamespaces*maxNames), hard%(ways*len(w.replicas))+replaces)
		c.add(beginUnasked, id, request%(maxSources*maxNamespaces*maxNames), hard%(ways*len(w.replicas)))
	}
	for source := range w.objects {
		for _, object := range w.objects[source].newest {
			if object != nil {
				c.add(deleteObject, source, object.namespace, object.name)
				if source == claims {
					c.add(growUnasked, source, object.namespace, object.name)
				}
			}
		}
	}
	for q := range w.shape.quotas {
		if w.quotas.newest[q] == nil {
			c.add(createQuota, q, hard, 0)
			continue
		}
		if len(w.edits) < 2 {
			c.add(beginEdit, id, q+maxQuotas*(id%len(w.replicas)), hard)
		}
		c.add(deleteQuota, q, 0, 0)
		if w.ledgers.newest[q] != nil {
			c.add(loseLedger, q, hard%2, 0)
		}
	}
	c.add(stopServing, 0, 0, 0)
	c.add(backUp, 0, 0, 0)
	if w.backup != nil {
		c.add(restoreBackup, 0, 0, 0)
		c.add(restoreBackup, 1, 0, 0)
	}
	if !w.newestConfiguration().deleted {
		c.add(deleteConfiguration, 0, 0, 0)
	}
}
