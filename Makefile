# A target writes or checks, never both. Nothing is needed but Go, make and git; a C compiler for the race detector and prose.
# Each version is pinned once: tools in hack/tools/go.mod and the modules below it; Go, and ginkgo with its library, in go.mod;
# Kubernetes in hack/controlplane/go.mod, and other versions to test with in hack/controlplane/versions.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
# A target is a file if its name has a slash.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

# Variables. `make help` lists the lines that begin with two hashes.
## KUBERNETES: version of the control plane, a directory of hack/controlplane/versions such as v1.30; unset: the version of go.mod
## MIRROR: URL of a copy of the official binaries of the control plane; unset: where they are published; off: build them, unless they are there
K8S := bin/k8s$(if $(KUBERNETES),-$(KUBERNETES))
## KUBEBUILDER_ASSETS: directory with kube-apiserver, etcd, kube-controller-manager and kubectl; unset: bin/k8s, which is downloaded or built
ASSETS := $(abspath $(or $(KUBEBUILDER_ASSETS),$(K8S)))
## KEEP: set to 1, the demo keeps everything running until Ctrl-C and prints the KUBECONFIG to use
## RACE: flag for the race detector; left out by default where there is no C compiler
RACE ?= $(if $(shell command -v $$(go env CC)),-race)
## TEST_ARGS: further arguments of go test, such as -timeout 1h
## GINKGO_ARGS: further arguments of ginkgo, which runs the longest suites, such as --focus REGEXP, --procs N
## FAULTS_SEED: what the randomness of the fault tests begins with; unset: 1
## FAULTS_DURATION: how long the fault tests go on with faults of all kinds, such as 30m; unset: one round
## SIMULATE: how long simulate goes on
SIMULATE ?= 10m
## SCREENSHOTS: directory for pictures of the Headlamp plugin; unset: none
## BENCH_ARGS: further arguments of bench, such as -short, -only REGEXP, -rounds N, and of bench-scale, such as -wake
## OUT: directory below which generate, manifests, api-docs, bundle and chart write
OUT ?= .
## IMG: name of the container image
IMG ?= shared-quota-operator:dev
## VERSION: version of the operator that the OLM bundle and a release are for, without a v
VERSION ?= 0.1.0
## CHANNELS: channels of an OLM catalog that offer this version, separated by commas
CHANNELS ?= candidate
## DEFAULT_CHANNEL: the one of them if none is named
DEFAULT_CHANNEL ?= candidate
## REPLACES: version that this one follows in its channels; unset for the first
## SKIPS: versions that nobody should stop at on the way to this one, separated by commas
## SKIP_RANGE: range of versions that OLM may upgrade to this one directly; unset: all earlier ones, -: none
## BUNDLES: directories of the bundles that a catalog offers, separated by commas
## HOMEPAGE: address of the repository whose releases the files name
HOMEPAGE ?= https://github.com/sharedquota/shared-quota-operator
## PLATFORM: linux/amd64 or linux/arm64 makes a release for that alone; unset: for all
## STRICT: set to 1, release fails unless the tree is that of the tag vVERSION, and the changelog has VERSION
## BUNDLE_IMG: name of the bundle's image
BUNDLE_IMG ?= shared-quota-operator-bundle:v$(VERSION)
## VULNDB: database of known vulnerabilities: vuln.go.dev, a mirror, or a copy as file:///path
VULNDB ?= https://vuln.go.dev
## CONTAINER_TOOL: command that builds the images
CONTAINER_TOOL ?= docker

# Only go.mod says which modules are built together.
export GOWORK := off
# A compiler is done before collecting its garbage pays: without, building the demo takes a third less. 1 GiB bounds each.
export GOFLAGS := $(shell go env GOFLAGS) '-toolexec=env GOGC=off GOMEMLIMIT=1GiB'
# Everything that the race detector can't check is built with the same flags, because the control plane, tools, modules, the programs
# of suites and what lint reads share most packages, which are then compiled once.
PLAIN := CGO_ENABLED=0 GOFLAGS="$(GOFLAGS) -trimpath"
# Without inlining, a program compiles in three quarters of the time. The standard library is compiled already, for controlplane.
QUICK := -gcflags='all=-l -dwarf=false' -gcflags='std=' -ldflags='-s -w'
# Lint has vetted what is tested.
GO_TEST := go test -vet=off
# A suite tests the operator that is a prerequisite of its target. The suite itself needs no race detector: it only calls the operator.
IN_SUITE = KUBEBUILDER_ASSETS="$(ASSETS)" MANAGER_BINARY="$(CURDIR)/bin/$(filter test-manager%,$^)" HELM_BINARY="$(CURDIR)/bin/tools/helm" $(PLAIN)
TEST_SUITE = $(IN_SUITE) $(GO_TEST) -count=1 -timeout 20m $(TEST_ARGS)

MODULE := github.com/sharedquota/shared-quota-operator
CHART := charts/shared-quota-operator
# Modules with code of our own, which agree on versions. Those below hack/tools stay apart: goreleaser and syft because more is
# downloaded for them than for all others, and the one's tests need an older runc than the other; OLM for its older Kubernetes libraries.
MODULES := . hack/controlplane hack/tools
GENERATORS := generate manifests api-docs bundle chart
GENERATED := api/v1/zz_generated.deepcopy.go bundle bundle.Dockerfile $(CHART)/Chart.yaml $(CHART)/files config/crd/bases \
	config/olm/extras.yaml config/rbac/role.yaml docs/api.md
# The suites with so many specs that one process would keep all others waiting.
LONG_SUITES := e2e plugin
# Those of the others that take longest begin first, because they wait most of the time.
SLOW_SUITES := wake faults/restore production upgrade security
# Packages that decide purely: neither they nor their tests start a goroutine.
PURE := $(addprefix internal/,admission definition fitting ledger machine outcomes simulation)
GO_FILES = $(shell find . \( -path ./bin -o -name node_modules \) -prune -o -name '*.go' -print)
# The files whose prose is checked. .vale.ini has the exceptions.
PROSE = $(wildcard *.md docs/*.md charts/*/*.md) $(filter-out hack/vale/testdata/%,$(GO_FILES:./%=%))

# $(call each,VALUES,COMMAND) runs COMMAND for each value, $$it, and fails at the end if it failed for one.
each = failed=0; for it in $(1); do ($(2)) || failed=1; done; exit $$failed
# $(call none,MESSAGE,COMMAND) fails with the message if COMMAND prints anything.
none = found="$$($(2))"; [[ -z "$$found" ]] || { echo "$(1):"; echo "$$found"; exit 1; }

##@ General

help: ## Show this help.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\nVariables\n'
	@sed -n 's/^## \([A-Z0-9_]*\): \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F '\t' '{ printf "  %-20s %s\n", $$1, $$2 }'

versions: ## Show what everything is pinned to.
	@echo "Operator $(VERSION), $$(go list -m -f 'Go {{.GoVersion}}'), image of $$(sed -n 's/^ARG GO_IMAGE=//p' Dockerfile)"
	@cd hack/controlplane && go list -m k8s.io/kubernetes go.etcd.io/etcd/server/v3
	@$(call each,. $(dir $(wildcard hack/tools/go.mod hack/tools/*/go.mod)),cd $$it && go list -find -f '{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}' tool)

##@ Try it

demo: controlplane ## Play a story on a real control plane, and tell it.
	@echo "Building the operator, the kubectl plugin and the demo: one to two minutes on two cores the first time ..."
	@$(PLAIN) go build $(QUICK) -o bin/try/ . ./cmd/kubectl-crq ./hack/demo
	@ln -sf kubectl-crq bin/try/kubectl_complete-crq
	@echo "Playing the demo: half a minute ..."
	@bin/try/demo -manager bin/try/$(notdir $(MODULE)) -plugin bin/try/kubectl-crq -assets "$(ASSETS)" -config config $(if $(filter-out 0,$(KEEP)),-keep)

##@ Generate (these write)

generate: bin/tools/controller-gen ## Write the deepcopy methods of the API types.
	bin/tools/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/v1 output:object:dir=$(OUT)/api/v1

# Controller-gen can't be told two things of quantities. Exponents have two digits at most: reading 1e-999999999 takes all memory.
# In what only the operator writes they are strings: with a schema that also takes numbers, each write of a status has the API
# server allocate a quarter more.
manifests: CRDS = $(OUT)/config/crd/bases
manifests: bin/tools/controller-gen ## Write the CRDs from the API types, and the role from the RBAC markers in the code.
	bin/tools/controller-gen crd rbac:roleName=shared-quota-manager-role paths=./... output:crd:dir=$(CRDS) output:rbac:dir=$(OUT)/config/rbac
	sed -E -i.orig -e '/pattern:/s/\[eE\].*/[eE](\\+|-)?[0-9]{1,2}))?$$/' \
		-e '/^          (status|entries):/,$${/anyOf:/d; /- type: integer/d; /- type: string/d; s/x-kubernetes-int-or-string: true/type: string/;}' $(CRDS)/*.yaml && rm $(CRDS)/*.orig

api-docs: bin/tools/crd-ref-docs ## Write docs/api.md from the API types.
	bin/tools/crd-ref-docs --source-path=api/v1 --config=hack/tools/crd-ref-docs/config.yaml --renderer=markdown --log-level=ERROR --output-path=$(OUT)/docs/api.md

bundle: bin/tools/kustomize bin/tools/release ## Write the OLM bundle of VERSION and IMG from config/ and the types.
	bin/tools/kustomize build config/manifests | bin/tools/release bundle -version "$(VERSION)" -channels "$(CHANNELS)" \
		-default-channel "$(DEFAULT_CHANNEL)" -replaces "$(REPLACES)" -skips "$(SKIPS)" -skip-range "$(SKIP_RANGE)" \
		-image "$(IMG)" -icon config/manifests/icon.svg -out $(OUT)

# The chart also takes what config/default leaves out until somebody wants it: its values choose.
chart: bin/tools/kustomize ## Write what the Helm chart takes from config/, and its VERSION.
	rm -rf bin/chart && mkdir -p bin $(OUT)/$(CHART)/files && cp -R config bin/chart
	sed -i.orig 's|^# \(- \.\./prometheus\)$$|\1|' bin/chart/default/kustomization.yaml
	bin/tools/kustomize build bin/chart/default >$(OUT)/$(CHART)/files/manifests.yaml
	bin/tools/kustomize build config/samples >$(OUT)/$(CHART)/files/sample.yaml
	sed -E 's/^(version|appVersion): .*/\1: $(VERSION)/' $(CHART)/Chart.yaml >bin/chart/Chart.yaml && mv bin/chart/Chart.yaml $(OUT)/$(CHART)/

catalog: bin/tools/release ## Write the package and the channels of an OLM catalog of BUNDLES to catalog/package.yaml.
	bin/tools/release catalog -bundles "$(BUNDLES)" -out catalog

fmt: bin/tools/golangci-lint ## Format the Go code.
	$(call each,$(MODULES),cd $$it && $(CURDIR)/bin/tools/golangci-lint fmt --config $(CURDIR)/.golangci.yml)

##@ Build (these write to bin/)

build: ## Build bin/manager, and the plugin of kubectl: bin/kubectl-crq with its completion.
	$(PLAIN) go build -o bin/manager .
	$(PLAIN) go build -o bin/kubectl-crq ./cmd/kubectl-crq
	@ln -sf kubectl-crq bin/kubectl_complete-crq

controlplane: $(if $(KUBEBUILDER_ASSETS),,$(K8S)/.stamp) ## Download the control plane for tests and the demo into bin/k8s, or build it; once.

# The program itself knows what its binaries are, and leaves them alone if nothing changed. The touch says so to make.
$(K8S)/.stamp: $(wildcard $(addprefix hack/controlplane/,go.mod go.sum SHA256SUMS *.go versions/$(KUBERNETES)/go.*))
	@echo "Looking for the control plane in $(K8S) ..."
	@cd hack/controlplane && $(PLAIN) go run . -kubernetes "$(KUBERNETES)" -mirror "$(MIRROR)" -out $(CURDIR)/$(K8S)
	@touch $@

controlplane-sums: ## Record the sums of the pinned official binaries as their sites, or MIRROR, publish them; after a change of version.
	cd hack/controlplane && $(PLAIN) go run . -mirror "$(MIRROR)" -record

# The line of go.mod that pins a tool names its package. Go downloads nothing for the module's other tools.
TOOL = cd $(<D) && $(PLAIN) $(TOOL_ENV) go build -tags '$(TAGS)' -o $(CURDIR)/$@ $$(sed -nE 's|^(tool)?[[:space:]]+(.*/$*(/v[0-9]+)?)$$|\2|p' go.mod) && touch $(CURDIR)/$@
OLM := $(addprefix bin/tools/,catalog olm opm)
bin/tools/%: hack/tools/go.mod hack/tools/go.sum; $(TOOL)
bin/tools/ginkgo: bin/tools/%: go.mod go.sum; $(TOOL)
bin/tools/goreleaser bin/tools/syft: bin/tools/%: hack/tools/%/go.mod hack/tools/%/go.sum; $(TOOL)
$(OLM): bin/tools/%: hack/tools/olm/go.mod hack/tools/olm/go.sum; $(TOOL)
bin/tools/release: $(wildcard hack/tools/release/*.go)
# Opm would need C for signatures by GPG, and half of promtool is what it discovers targets by.
$(OLM): TAGS := containers_image_openpgp
bin/tools/promtool: TAGS := remove_all_sd
# Vale has a parser in C for each language. Without optimization it builds in three quarters of the time, and without C in the
# standard library it shares that with the other tools.
bin/tools/vale: TAGS := netgo osusergo
bin/tools/vale: TOOL_ENV := CGO_ENABLED=1 CGO_CFLAGS="-O0 -w"

docker-build: ## Build the container image IMG; needs CONTAINER_TOOL.
	$(CONTAINER_TOOL) build --build-arg VERSION=v$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) --tag $(IMG) .
bundle-build: ## Build the image of the OLM bundle, BUNDLE_IMG; needs CONTAINER_TOOL.
	$(CONTAINER_TOOL) build --file bundle.Dockerfile --tag $(BUNDLE_IMG) .

# Nothing is published: .github/workflows/release.yml does that. The address of no remote gets into a file, but goreleaser
# wants one. It writes the manifest for Krew after the sums.
release: IMG := $(if $(filter command line,$(origin IMG)),$(IMG),ghcr.io/sharedquota/shared-quota-operator:v$(VERSION))
release: FILES := bin/release-build
release: $(addprefix bin/tools/,goreleaser kustomize release syft) ## Make all files of release VERSION with the image IMG in bin/release; the same commit gives the same bytes.
	@[[ "$(origin VERSION)" != file ]] || { echo "VERSION is missing: name one, such as VERSION=1.2.3"; exit 1; }
	@[[ "$(PLATFORM)" =~ ^(linux/(amd64|arm64))?$$ ]] || { echo "PLATFORM is $(PLATFORM), want linux/amd64, linux/arm64 or none"; exit 1; }
	@[[ "$(IMG)" != *@* ]] || { echo "IMG is $(IMG), want a tag: the chart names it"; exit 1; }
	@rm -rf bin/release $(FILES) && mkdir -p bin/release $(FILES)/charts && cp -R $(CHART) $(FILES)/charts/
	@$(MAKE) bundle OUT=$(FILES)/bundle IMG="$(IMG)" >/dev/null
	@$(MAKE) chart OUT=$(FILES) >/dev/null
	@$(with-image) >$(FILES)/install.yaml
	@image="$(IMG)"; sed -i -E "/^image:/,/^  tag:/{s|^(  repository:).*|\1 \"$${image%:*}\"|;s|^(  tag:).*|\1 \"$${image##*:}\"|}" $(FILES)/$(CHART)/values.yaml
	@grep -q '^  tag: "' $(FILES)/$(CHART)/values.yaml || { echo "the chart's image isn't where make looks for it"; exit 1; }
	@sed -n '/^## \[$(VERSION)\]/,/^## \[/{/^## \[/!p;}' CHANGELOG.md >$(FILES)/NOTES.md
	@[[ -s $(FILES)/NOTES.md ]] || { echo "CHANGELOG.md has no section [$(VERSION)]"; [[ -z "$(filter-out 0,$(STRICT))" ]]; }
	@sed -E '/- (linux|darwin|windows)_/{/$(subst /,_,$(PLATFORM))/!d;}' .goreleaser.yaml >$(FILES)/goreleaser.yaml
	@PATH="$(CURDIR)/bin/tools:$$PATH" GORELEASER_CURRENT_TAG="v$(VERSION)" HOMEPAGE="$(HOMEPAGE)" GOMODCACHE="$$(go env GOMODCACHE)" \
		GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0="$(HOMEPAGE)" \
		bin/tools/goreleaser release --config $(FILES)/goreleaser.yaml --skip=publish,announce $(if $(filter-out 0,$(STRICT)),,--skip=validate)
	@cd $(FILES) && cp install.yaml NOTES.md dist/SHA256SUMS dist/krew/crq.yaml $$(find dist -maxdepth 1 -type f -name '*$(VERSION)*') ../release
	@rm -r $(FILES) && cd bin/release && sha256sum crq.yaml >>SHA256SUMS && sha256sum --check --quiet SHA256SUMS && cat SHA256SUMS

##@ Install (these change the cluster that kubectl talks to)

# Everything that a cluster needs, with the image IMG.
with-image = bin/tools/kustomize build config/default | sed 's|image: shared-quota-operator:.*|image: $(IMG)|'

deploy: bin/tools/kustomize ## Install everything, with the image IMG.
	$(with-image) | kubectl apply -f -
undeploy: bin/tools/kustomize ## Delete everything that deploy installed, and all quotas.
	bin/tools/kustomize build config/default | kubectl delete --ignore-not-found -f -
build-installer: bin/tools/kustomize ## Write everything that deploy installs to the one file bin/install.yaml, with the image IMG.
	$(with-image) >bin/install.yaml

##@ Test (these only check)

test: test-unit test-alerts test-integration test-faults ## Run all tests but test-docs, test-olm and those of the Headlamp plugin.

# The race detector has nothing to find in packages that start no goroutine, and makes them slow.
test-unit: ## Run the tests that need no API server.
	@[[ -n "$(RACE)" ]] || echo "No C compiler: running without the race detector."
	$(GO_TEST) $(RACE) $(TEST_ARGS) $(filter-out $(MODULE)/test/% $(PURE:%=$(MODULE)/%),$(shell go list ./...))
	$(PLAIN) $(GO_TEST) -skip '^(TestDocs|TestTheBinary.*)$$' $(TEST_ARGS) $(PURE:%=./%) ./test/comparison ./test/docs ./test/image
	$(call each,controlplane tools/release,cd hack/$$it && $(PLAIN) $(GO_TEST) $(TEST_ARGS) ./...)

simulate: ## Simulate clusters with fresh seeds for SIMULATE. It prints its first seed, and the seed of a failure.
	SIMULATE="$(SIMULATE)" $(PLAIN) $(GO_TEST) -count=1 -timeout 0 -v -run '^TestFresh$$' $(TEST_ARGS) ./internal/simulation
compare: controlplane test-manager-plain ## Play 200 cases, or COMPARE, of what fit and preflight say on a real API server, and 100 times as many without; from COMPARE_SEED on.
	@export COMPARE="$(or $(COMPARE),200)" COMPARE_SEED="$(or $(COMPARE_SEED),$(shell date +%s))"; COMPARE="$${COMPARE}00" $(PLAIN) $(GO_TEST) -count=1 -v ./test/comparison && $(TEST_SUITE) -timeout 2h -v ./test/preflight -ginkgo.label-filter=comparison

# Promtool reads rules as they are in the resource's spec.
test-alerts: bin/tools/promtool ## Run the cases of the alerts, and check that they and the dashboard ask for what is exported.
	@sed -n '/^spec:$$/,$$ s/^  //p' config/prometheus/alerts.yaml >bin/alerts.yaml
	bin/tools/promtool check rules --lint-fatal bin/alerts.yaml
	bin/tools/promtool test rules hack/tools/promtool/alerts.yaml
	cd hack/tools && $(PLAIN) $(GO_TEST) -count=1 ./promtool

# The operator has the race detector in the suites with the most concurrent requests. The short ones take two thirds of the CPU without.
test-manager:
	go build $(RACE) -ldflags='-s -w -X main.clockOffset=CLOCK_OFFSET' -o bin/$@ .
test-manager-plain:
	$(PLAIN) go build -ldflags='-s -w -X main.clockOffset=CLOCK_OFFSET' -o bin/$@ .

test-integration: test-long test-short ## Run the suites under test/ against a real API server, but those with faults and of the documentation.

# Each process of ginkgo runs an API server, an operator and the specs that nobody has begun yet. A suite waits for its API server
# most of the time: two cores have work for three or four. Why specs failed is told again at the end, where people look first.
test-long: controlplane test-manager bin/tools/ginkgo ## Run the longest of these suites, one after the other, each shared among four processes.
	@rm -f bin/long.xml
	$(IN_SUITE) bin/tools/ginkgo run --vet=off --ldflags='-s -w' --procs=4 --keep-going --require-suite --fail-on-pending \
		--output-dir=bin --junit-report=long.xml $(GINKGO_ARGS) $(LONG_SUITES:%=./test/%) || { grep -s "<testcase.* status=\"failed\"\|<failure" bin/long.xml | cut -c 1-1000; false; }

test-short: controlplane test-manager-plain bin/tools/helm ## Run the other ones of these suites, three at the same time.
	$(TEST_SUITE) -p 3 $(SLOW_SUITES:%=./test/%) \
		$(filter-out $(addprefix %/test/,comparison docs faults headlamp image olm/live $(LONG_SUITES) $(SLOW_SUITES)),$(shell go list ./test/...))

# A control plane for each page, and a build from nothing: a few minutes that only a change of pages, config/ or the Dockerfile needs.
test-docs: controlplane test-manager ## Do what README.md and docs/ tell people to do, on a real API server, and build the binary as the image does.
	$(TEST_SUITE) -p 1 ./test/docs ./test/image

test-olm: controlplane test-manager $(OLM) bin/tools/release bin/tools/kustomize ## Install, upgrade and remove the operator through OLM itself, which takes many minutes to build.
	OLM_BINARIES="$(CURDIR)/bin/tools" RELEASE_BINARY="$(CURDIR)/bin/tools/release" KUSTOMIZE_BINARY="$(CURDIR)/bin/tools/kustomize" \
		$(TEST_SUITE) -v ./test/olm/live

plugins/headlamp/node_modules/.package-lock.json: $(addprefix plugins/headlamp/,package.json package-lock.json .npmrc)
	cd plugins/headlamp && npm ci
	@touch $@

test-headlamp-unit: plugins/headlamp/node_modules/.package-lock.json ## Check the types of the Headlamp plugin, and run its unit tests; needs npm.
	cd plugins/headlamp && npm run tsc && npm test
test-headlamp: test-headlamp-unit controlplane test-manager ## Test the Headlamp plugin, in Chromium against a real API server, too; needs npm and chromium.
	$(if $(SCREENSHOTS),SCREENSHOTS="$(abspath $(SCREENSHOTS))") $(TEST_SUITE) -v ./test/headlamp

# What happened is told when all went well, too. The suite has time limits of its own, which know of FAULTS_DURATION.
test-faults: controlplane test-manager ## Kill, pause and cut off replicas and the API server, while clients hammer at the limit.
	$(TEST_SUITE) -timeout 0 -v ./test/faults

##@ Measure

bench: controlplane build ## Measure admission on a real control plane, against no quota, the cheapest webhook and native ResourceQuota, and render docs/benchmarks.md. BENCH_JSON: file for the figures; unset: hack/bench/results, if complete.
	@$(PLAIN) go run ./hack/bench pods -manager bin/manager -assets "$(ASSETS)" $(BENCH_ARGS) && $(PLAIN) go run ./hack/bench page
bench-scale: controlplane build ## Measure starts, rest and the loss of the leader with many objects on a real control plane, beside native ResourceQuota, and render docs/benchmarks.md. BENCH_JSON: as of bench.
	@$(PLAIN) go run ./hack/bench scale -manager bin/manager -assets "$(ASSETS)" $(BENCH_ARGS) && $(PLAIN) go run ./hack/bench page

##@ Verify (these only check)

verify: verify-quick lint ## Run all checks that a change must pass.
verify-quick: verify-licence verify-pure verify-fmt verify-versions verify-mod verify-generated verify-kustomize prose ## Run all of them but lint.

verify-licence: ## Check that every Go file has the licence header.
	@$(call none,these lack the header of hack/boilerplate.go.txt,while read -r line; do grep -LFxe "$$line" $(GO_FILES) || true; done <hack/boilerplate.go.txt)
verify-pure: CONCURRENT := "sync"|"sync/atomic"|"testing/synctest"|^\s*go (func|[A-Za-z]\w*(\.\w+)*\()|\.Go\(|t\.Parallel\(
verify-pure: ## Check that what is tested without the race detector starts no goroutine and shares nothing.
	@$(call none,no package for PURE in the Makefile,grep -nE '$(CONCURRENT)' $(PURE:%=%/*.go) || true)
verify-fmt: ## Check that every Go file is formatted.
	@$(call none,not formatted; run make fmt,gofmt -l $(GO_FILES))

verify-versions: ## Check that modules agree on versions, Kubernetes' included, and that updates are looked for in every module.
	@$(call none,go get these in each of $(MODULES) so that they are compiled once,sed -nE \
		's/^(require)?[[:space:]]+([^[:space:]]+) (v[0-9][^[:space:]]*).*/\2 \3/p' $(MODULES:%=%/go.mod) | sort -uV | awk 'seen[$$1]++')
	@$(call each,$(patsubst %/go.mod,%,$(wildcard hack/*/go.mod hack/tools/*/go.mod)),grep -qx "  - /$$it" .github/dependabot.yml || \
		{ echo "$$it: missing in .github/dependabot.yml"; false; })

# Those of goreleaser and syft are left out: more would be downloaded for them than for all others.
verify-mod: ## Check that every go.mod and go.sum is tidy.
	@$(call each,$(MODULES) hack/tools/olm,cd $$it && go mod tidy -diff || { echo "$$it: not tidy; run go mod tidy there"; false; })

# Lint, which may run at the same time, doesn't see the copies: Go skips directories that begin with an underscore.
verify-generated: $(addprefix bin/tools/,controller-gen crd-ref-docs kustomize release) ## Check that generated code, manifests, pages, bundle and chart are up to date, for the same VERSION, CHANNELS and IMG.
	@rm -rf bin/_verify && mkdir -p bin/_verify/{api/v1,config/crd/bases,config/rbac,docs}
	@$(MAKE) $(GENERATORS) OUT=bin/_verify >/dev/null
	@$(call each,$(GENERATED),diff -ru $$it bin/_verify/$$it || { echo "$$it: run make $(GENERATORS)"; false; })
	@rm -rf bin/_verify

verify-kustomize: bin/tools/kustomize ## Check that the directories under config/ build.
	@$(call each,$(dir $(wildcard config/*/kustomization.yaml)),bin/tools/kustomize build $$it >/dev/null || { echo "$$it: does not build"; false; })

# Two clones, in directories of different depths, with different masks and time zones.
verify-release: PLATFORM ?= linux/amd64
verify-release: bin/tools/kustomize bin/tools/goreleaser bin/tools/syft ## Check that two clones of the commit make the same release, byte for byte; PLATFORM= for all platforms.
	@rm -rf bin/verify-release && mkdir -p bin/verify-release/deeper/still
	@make-in() { git clone -q . "$$1" && mkdir -p "$$1/bin/tools" && cp $^ "$$1/bin/tools/" && touch "$$1"/bin/tools/* && \
		$(MAKE) -C "$$1" release VERSION=0.0.1-rc.1 IMG=registry.example/operator:v0.0.1-rc.1 PLATFORM="$(PLATFORM)" >/dev/null; }; \
	(umask 022; TZ=UTC LC_ALL=C make-in bin/verify-release/one) && \
	(umask 077; TZ=Asia/Kathmandu LC_ALL=C.UTF-8 make-in bin/verify-release/deeper/still/two)
	@diff -r bin/verify-release/one/bin/release bin/verify-release/deeper/still/two/bin/release || { echo "two clones make different files"; exit 1; }
	@rm -rf bin/verify-release

# Only the configuration in this directory counts, and nothing is downloaded. The rules are tested first: they must find exactly
# testdata/findings.txt, and each error must make vale fail.
prose: VALE := bin/tools/vale --no-global --output=line
prose: ERRORS = $(basename $(notdir $(shell grep -l '^level: error$$' hack/vale/styles/Plain/*.yml)))
prose: bin/tools/vale ## Check the documentation and the comments in Go code against the rules of hack/vale/styles.
	@diff -u hack/vale/testdata/findings.txt <($(VALE) --minAlertLevel=suggestion hack/vale/testdata/*.{go,md} | LC_ALL=C sort -t: -k1,1 -k2,2n -k3,3n) || { \
		echo "hack/vale/testdata: the rules of hack/vale/styles find something else"; exit 1; }
	@$(call each,$(ERRORS),! $(VALE) --filter=".Name == \"Plain.$$it\"" hack/vale/testdata/bad.md >/dev/null || \
		{ echo "Plain.$$it: finds nothing in hack/vale/testdata/bad.md"; false; })
	@$(VALE) $(PROSE)

lint: bin/tools/golangci-lint ## Check the Go code against .golangci.yml.
	@$(call each,$(MODULES),cd $$it && $(PLAIN) $(CURDIR)/bin/tools/golangci-lint run --config $(CURDIR)/.golangci.yml --timeout 20m ./...)

vulnerabilities: bin/tools/govulncheck ## Look for vulnerabilities that VULNDB knows in what is linked.
	bin/tools/govulncheck -db $(VULNDB) ./...
