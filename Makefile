# A target writes or checks, never both. Nothing is needed but Go, make and
# git; a C compiler for the race detector and prose. Where each version is pinned:
#   a tool:       hack/tools/NAME/go.mod; ginkgo, which has the version of the library: go.mod
#   Kubernetes:   hack/controlplane/go.mod (verify compares go.mod with it); other versions to test with: hack/controlplane/versions
#   Go:           go.mod

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# Variables. `make help` lists the lines that begin with two hashes.
## KUBERNETES: version of the control plane, a directory of hack/controlplane/versions such as v1.30; unset: the version of go.mod
KUBERNETES ?=
## MIRROR: URL of a copy of the official binaries of the control plane; unset: where they are published; off: build them, unless they are there
MIRROR ?=
K8S := bin/k8s$(if $(KUBERNETES),-$(KUBERNETES))
## KUBEBUILDER_ASSETS: directory with kube-apiserver, etcd, kube-controller-manager and kubectl; unset: bin/k8s, which is downloaded or built
ASSETS := $(abspath $(or $(KUBEBUILDER_ASSETS),$(K8S)))
## KEEP: set to 1, the demo keeps everything running until Ctrl-C and prints the KUBECONFIG to use
KEEP ?=
## RACE: flag for the race detector; left out by default where there is no C compiler
RACE ?= $(if $(shell command -v $$(go env CC)),-race)
## TEST_ARGS: further arguments of go test
TEST_ARGS ?=
## UNIT_TIMEOUT: time limit of each package of unit tests
UNIT_TIMEOUT ?= 10m
## INTEGRATION_TIMEOUT: time limit of each suite that runs against the API server
INTEGRATION_TIMEOUT ?= 20m
## SUITES: among how many processes the longest of these suites are shared
SUITES ?= 4
## GINKGO_ARGS: further arguments of ginkgo, which runs the longest suites, such as --focus REGEXP
GINKGO_ARGS ?=
## FAULTS_SEED: what the randomness of the fault tests begins with
FAULTS_SEED ?= 1
## FAULTS_DURATION: how long the fault tests go on with faults of all kinds, such as 30m; unset: one round
FAULTS_DURATION ?=
## SIMULATE: how long simulate goes on
SIMULATE ?= 10m
## BENCH_ARGS: further arguments of bench, such as -only REGEXP, -rounds N, and of bench-scale, such as -wake
BENCH_ARGS ?=
## IMG: name of the container image
IMG ?= shared-quota-operator:dev
## VERSION: version of the operator that the OLM bundle and a release are for, without a v
VERSION ?= 0.1.0
## CHANNELS: channels of an OLM catalog that offer this version, separated by commas
CHANNELS ?= candidate
## DEFAULT_CHANNEL: the one of them if none is named
DEFAULT_CHANNEL ?= candidate
## REPLACES: version that this one follows in its channels; unset for the first
REPLACES ?=
## SKIPS: versions that nobody should stop at on the way to this one, separated by commas
SKIPS ?=
## SKIP_RANGE: range of versions that OLM may upgrade to this one directly; unset: all earlier ones, -: none
SKIP_RANGE ?=
## BUNDLES: directories of the bundles that a catalog offers, separated by commas
BUNDLES ?=
## HOMEPAGE: address of the repository whose releases the files name
HOMEPAGE ?= https://github.com/sharedquota/shared-quota-operator
## PLATFORM: linux/amd64 or linux/arm64 makes a release for that alone; unset: for all
PLATFORM ?=
## STRICT: set to 1, release fails unless the tree is that of the tag vVERSION, and the changelog has VERSION
STRICT ?=
## BUNDLE_IMG: name of the bundle's image
BUNDLE_IMG ?= shared-quota-operator-bundle:v$(VERSION)
## VULNDB: database of known vulnerabilities: vuln.go.dev, a mirror, or a copy as file:///path
VULNDB ?= https://vuln.go.dev
## KUBECTL: kubectl of the cluster that is installed to
KUBECTL ?= kubectl
## CONTAINER_TOOL: command that builds the images
CONTAINER_TOOL ?= docker

# A compiler is done before collecting its garbage pays: without, building the demo takes a third less. 1 GiB bounds each.
export GOFLAGS := $(shell go env GOFLAGS) '-toolexec=env GOGC=off GOMEMLIMIT=1GiB'
# Whatever the race detector has nothing to find in is built alike: the control plane, tools, modules, the
# programs of suites and what lint reads have most packages in common, which are compiled once then.
PLAIN := CGO_ENABLED=0 GOFLAGS="$(GOFLAGS) -trimpath"
# What nobody measures or debugs compiles in three quarters of the time if nothing is inlined. The standard library is
# compiled already, by what downloads the control plane.
QUICK := -gcflags='all=-l -dwarf=false' -gcflags='std=' -ldflags='-s -w'
# Lint has vetted what is tested.
GO_TEST := go test -vet=off
# The program of a suite only calls the operator, which is a process of its own: the race detector is in that alone, where
# most requests are concurrent. The short suites' operator has none: they take about two thirds of the CPU so.
MANAGER := test-manager
IN_SUITE = KUBEBUILDER_ASSETS="$(ASSETS)" MANAGER_BINARY="$(CURDIR)/bin/$(MANAGER)" HELM_BINARY="$(CURDIR)/$(HELM)" $(PLAIN)
TEST_SUITE = $(IN_SUITE) $(GO_TEST) -count=1 $(TEST_ARGS)

CONTROLLER_GEN := bin/tools/controller-gen
CRD_REF_DOCS := bin/tools/crd-ref-docs
GINKGO := bin/tools/ginkgo
GORELEASER := bin/tools/goreleaser
GOLANGCI_LINT := bin/tools/golangci-lint
HELM := bin/tools/helm
KUSTOMIZE := bin/tools/kustomize
OLM := bin/tools/olm
PROMTOOL := bin/tools/promtool
RELEASE := bin/make-release
SYFT := bin/tools/syft
VALE := bin/tools/vale

CHART := charts/shared-quota-operator

MODULE := github.com/sharedquota/shared-quota-operator
# Directories with a Go module of their own.
MODULES := . hack/controlplane hack/release $(patsubst %/go.mod,%,$(wildcard hack/tools/*/go.mod))
# Modules with code of their own to lint.
LINT_MODULES := . hack/controlplane hack/release hack/tools/promtool
# Modules that have so much in common that it must be compiled alike. The others share little, and have older versions of it.
ALIKE := $(filter-out $(addprefix hack/tools/,golangci-lint goreleaser govulncheck olm syft vale),$(MODULES))
KUSTOMIZATIONS := config/argocd config/crd config/default config/manifests config/network-policy config/no-wake config/policies config/prometheus \
	config/samples
# The suites with so many specs that one process would keep all others waiting.
LONG_SUITES := e2e plugin
# Those of the others that take longest begin first, because they wait most of the time.
SLOW_SUITES := wake faults/restore production upgrade security
# Packages that decide purely: neither they nor their tests start a goroutine.
PURE := internal/definition internal/fitting internal/ledger internal/machine internal/report internal/resourceversion \
	internal/simulation
# Everything that is ours and formatted.
GO_FILES = $(shell find . \( -path ./bin -o -name node_modules \) -prune -o -name '*.go' -print)
# The files whose prose is checked. .vale.ini has the exceptions.
PROSE = $(wildcard *.md docs/*.md charts/*/*.md) $(filter-out hack/vale/testdata/%,$(GO_FILES:./%=%))

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-20s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\nVariables\n'
	@sed -n 's/^## \([A-Z_]*\): \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F '\t' '{ printf "  %-20s %s\n", $$1, $$2 }'

##@ Try it

.PHONY: demo
demo: controlplane ## Play a story on a real control plane, and tell it.
	@echo "Building the operator, the kubectl plugin and the demo: one to two minutes on two cores the first time ..."
	@mkdir -p bin/try
	@$(PLAIN) go build $(QUICK) -o bin/try/ . ./cmd/kubectl-crq ./hack/demo
	@ln -sf kubectl-crq bin/try/kubectl_complete-crq
	@echo "Playing the demo: half a minute ..."
	@bin/try/demo -manager bin/try/$(notdir $(MODULE)) -plugin bin/try/kubectl-crq -assets "$(ASSETS)" -config config $(if $(filter-out 0,$(KEEP)),-keep)

##@ Generate (these write)

# $(1) receives the CRDs, $(2) the role. The exponent of a quantity gets two digits at most, which
# controller-gen can't be told: to read 1e-999999999 takes more memory than a machine has.
define manifests-into
$(CONTROLLER_GEN) crd rbac:roleName=shared-quota-manager-role paths=./... output:crd:dir=$(1) output:rbac:dir=$(2)
sed -i.orig '/pattern:/s/\[eE\].*/[eE](\\+|-)?[0-9]{1,2}))?$$/' $(1)/*.yaml && rm $(1)/*.orig
endef

# $(1) receives the deepcopy code.
define deepcopy-into
$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/v1 output:object:dir=$(1)
endef

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Write the deepcopy methods of the API types.
	$(call deepcopy-into,api/v1)

.PHONY: manifests
manifests: $(CONTROLLER_GEN) ## Write the CRDs from the API types, and the role from the RBAC markers in the code.
	$(call manifests-into,config/crd/bases,config/rbac)

# $(1) receives the bundle, bundle.Dockerfile and what stands beside a bundle.
define bundle-into
$(KUSTOMIZE) build config/manifests | $(RELEASE) bundle -version "$(VERSION)" -channels "$(CHANNELS)" \
	-default-channel "$(DEFAULT_CHANNEL)" -replaces "$(REPLACES)" -skips "$(SKIPS)" -skip-range "$(SKIP_RANGE)" \
	-image "$(IMG)" -icon config/manifests/icon.svg -out $(1)
endef

# Go knows what the program was built from.
.PHONY: $(RELEASE)
$(RELEASE):
	@cd hack/release && $(PLAIN) GOWORK=off go build -o $(CURDIR)/$@ .

.PHONY: bundle
bundle: $(KUSTOMIZE) $(RELEASE) ## Write the OLM bundle of VERSION and IMG from config/ and the types.
	$(call bundle-into,.)

# $(1) receives what the chart takes from config/, and its version. What is optional in config/default
# is there, too: the chart's values choose.
define chart-into
rm -rf bin/chart && mkdir -p bin $(1)/files && cp -R config bin/chart && \
sed -i.orig 's|^# \(- \.\./prometheus\)$$|\1|' bin/chart/default/kustomization.yaml && \
$(KUSTOMIZE) build bin/chart/default >$(1)/files/manifests.yaml && \
$(KUSTOMIZE) build config/samples >$(1)/files/sample.yaml && \
sed -E 's/^(version|appVersion): .*/\1: $(VERSION)/' $(CHART)/Chart.yaml >bin/chart/Chart.yaml && mv bin/chart/Chart.yaml $(1)/Chart.yaml
endef

.PHONY: chart
chart: $(KUSTOMIZE) ## Write what the Helm chart takes from config/, and its VERSION.
	$(call chart-into,$(CHART))

.PHONY: catalog
catalog: $(RELEASE) ## Write the package and the channels of an OLM catalog of BUNDLES to catalog/package.yaml.
	$(RELEASE) catalog -bundles "$(BUNDLES)" -out catalog

# $(1) is the page to write.
define api-docs-into
$(CRD_REF_DOCS) --source-path=api/v1 --config=hack/tools/crd-ref-docs/config.yaml --renderer=markdown --log-level=ERROR --output-path=$(1)
endef

.PHONY: api-docs
api-docs: $(CRD_REF_DOCS) ## Write docs/api.md from the API types.
	$(call api-docs-into,docs/api.md)

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code.
	$(foreach module,$(LINT_MODULES),cd $(CURDIR)/$(module) && $(CURDIR)/$(GOLANGCI_LINT) fmt --config $(CURDIR)/.golangci.yml &&) true

##@ Build (these write to bin/)

.PHONY: build
build: ## Build bin/manager, and the plugin of kubectl: bin/kubectl-crq with its completion.
	$(PLAIN) go build -o bin/manager .
	$(PLAIN) go build -o bin/kubectl-crq ./cmd/kubectl-crq
	@ln -sf kubectl-crq bin/kubectl_complete-crq

.PHONY: controlplane
controlplane: $(if $(KUBEBUILDER_ASSETS),,$(K8S)/.stamp) ## Download the control plane for tests and the demo into bin/k8s, or build it; once.

# The program itself knows what its binaries are, and leaves them alone when
# nothing changed. The touch says so to make.
$(K8S)/.stamp: $(wildcard $(addprefix hack/controlplane/,go.mod go.sum SHA256SUMS *.go versions/$(KUBERNETES)/go.*))
	@echo "Looking for the control plane in $(K8S) ..."
	@cd hack/controlplane && $(PLAIN) GOWORK=off go run . -kubernetes "$(KUBERNETES)" -mirror "$(MIRROR)" -out $(CURDIR)/$(K8S)
	@touch $@

.PHONY: controlplane-sums
controlplane-sums: ## Record the sums of the pinned official binaries as their sites, or MIRROR, publish them; after a change of version.
	cd hack/controlplane && $(PLAIN) GOWORK=off go run . -mirror "$(MIRROR)" -record

# Without what it discovers targets by: half of promtool.
bin/tools/promtool: TAGS := remove_all_sd
# Vale has a parser in C for each language. Without optimization it builds in three quarters of
# the time, and without C in the standard library it shares that with the other tools.
bin/tools/vale: TAGS := netgo osusergo
bin/tools/vale: TOOL_ENV := CGO_ENABLED=1 CGO_CFLAGS="-O0 -w"
# OLM: its two operators and opm, which takes no signatures by GPG here.
bin/tools/olm: hack/tools/olm/go.mod hack/tools/olm/go.sum
	@mkdir -p $@
	cd hack/tools/olm && $(PLAIN) GOWORK=off go build -tags containers_image_openpgp -o $(CURDIR)/$@/ tool
	@touch $@
bin/tools/ginkgo: go.mod go.sum
	$(PLAIN) go build -o $@ github.com/onsi/ginkgo/v2/ginkgo
	@touch $@
bin/tools/%: hack/tools/%/go.mod hack/tools/%/go.sum
	cd hack/tools/$* && $(PLAIN) $(TOOL_ENV) GOWORK=off go build -tags '$(TAGS)' -o $(CURDIR)/$@ tool
	@touch $@

.PHONY: docker-build
docker-build: ## Build the container image IMG; needs CONTAINER_TOOL.
	$(CONTAINER_TOOL) build --build-arg VERSION=v$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) --tag $(IMG) .

.PHONY: bundle-build
bundle-build: ## Build the image of the OLM bundle, BUNDLE_IMG; needs CONTAINER_TOOL.
	$(CONTAINER_TOOL) build --file bundle.Dockerfile --tag $(BUNDLE_IMG) .

# Nothing is published: .github/workflows/release.yml does that. The address of no remote gets into a file, but goreleaser
# wants one. It writes the manifest for Krew after the sums.
.PHONY: release
release: IMG := $(if $(filter command line,$(origin IMG)),$(IMG),ghcr.io/sharedquota/shared-quota-operator:v$(VERSION))
release: $(KUSTOMIZE) $(GORELEASER) $(SYFT) $(RELEASE) ## Make all files of release VERSION with the image IMG in bin/release; the same commit gives the same bytes.
	@[[ "$(origin VERSION)" != file ]] || { echo "VERSION is missing: name one, such as VERSION=1.2.3"; exit 1; }
	@[[ "$(PLATFORM)" =~ ^(linux/(amd64|arm64))?$$ ]] || { echo "PLATFORM is $(PLATFORM), want linux/amd64, linux/arm64 or none"; exit 1; }
	@[[ "$(IMG)" != *@* ]] || { echo "IMG is $(IMG), want a tag: the chart names it"; exit 1; }
	@rm -rf bin/release bin/release-build && mkdir -p bin/release bin/release-build
	@$(call bundle-into,bin/release-build/bundle)
	@$(call with-image,config/default) >bin/release-build/install.yaml
	@cp -R $(CHART) bin/release-build/chart
	@sed -i -E 's/^(version|appVersion): .*/\1: "$(VERSION)"/' bin/release-build/chart/Chart.yaml
	@image="$(IMG)"; sed -i -E "/^image:/,/^  tag:/{s|^(  repository:).*|\1 \"$${image%:*}\"|;s|^(  tag:).*|\1 \"$${image##*:}\"|}" bin/release-build/chart/values.yaml
	@grep -q '^  tag: "' bin/release-build/chart/values.yaml && grep -q '^appVersion: "' bin/release-build/chart/Chart.yaml || \
		{ echo "the chart's version or image isn't where make looks for it"; exit 1; }
	@sed -n '/^## \[$(VERSION)\]/,/^## \[/{/^## \[/!p;}' CHANGELOG.md >bin/release-build/NOTES.md
	@[[ -s bin/release-build/NOTES.md ]] || { echo "CHANGELOG.md has no section [$(VERSION)]"; [[ -z "$(filter-out 0,$(STRICT))" ]]; }
	@sed -E '/- (linux|darwin|windows)_/{/$(subst /,_,$(PLATFORM))/!d;}' .goreleaser.yaml >bin/release-build/goreleaser.yaml
	@PATH="$(CURDIR)/bin/tools:$$PATH" GORELEASER_CURRENT_TAG="v$(VERSION)" HOMEPAGE="$(HOMEPAGE)" GOMODCACHE="$$(go env GOMODCACHE)" \
		GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0="$(HOMEPAGE)" \
		$(GORELEASER) release --config bin/release-build/goreleaser.yaml --skip=publish,announce $(if $(filter-out 0,$(STRICT)),,--skip=validate)
	@cd bin/release-build && cp install.yaml NOTES.md dist/SHA256SUMS dist/krew/crq.yaml $$(find dist -maxdepth 1 -type f -name '*$(VERSION)*') ../release
	@rm -r bin/release-build && cd bin/release && sha256sum crq.yaml >>SHA256SUMS && sha256sum --check --quiet SHA256SUMS && cat SHA256SUMS

##@ Install (these change the cluster that kubectl talks to)

# $(1) is the kustomization to build, with the image IMG in the place of its own.
define with-image
$(KUSTOMIZE) build $(1) | sed 's|image: shared-quota-operator:.*|image: $(IMG)|'
endef

.PHONY: install
install: $(KUSTOMIZE) ## Install the CRDs alone.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply -f -

.PHONY: uninstall
uninstall: $(KUSTOMIZE) ## Delete the CRDs, and with them all quotas.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: $(KUSTOMIZE) ## Install everything, with the image IMG.
	$(call with-image,config/default) | $(KUBECTL) apply -f -

.PHONY: undeploy
undeploy: $(KUSTOMIZE) ## Delete everything that deploy installed, and all quotas.
	$(KUSTOMIZE) build config/default | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: build-installer
build-installer: $(KUSTOMIZE) ## Write everything that deploy installs to the one file bin/install.yaml, with the image IMG.
	@mkdir -p bin
	$(call with-image,config/default) >bin/install.yaml

##@ Test (these only check)

.PHONY: test
test: test-unit test-alerts test-integration test-faults ## Run all tests but test-docs.

# The race detector has nothing to find in packages that start no goroutine, and makes them slow.
.PHONY: test-unit
test-unit: ## Run the tests that need no API server.
	@[[ -n "$(RACE)" ]] || echo "No C compiler: running without the race detector."
	$(GO_TEST) $(RACE) -timeout $(UNIT_TIMEOUT) $(TEST_ARGS) $(filter-out $(MODULE)/test/% $(PURE:%=$(MODULE)/%),$(shell go list ./...))
	$(PLAIN) $(GO_TEST) -timeout $(UNIT_TIMEOUT) -skip '^(TestDocs|TestTheBinary.*)$$' $(TEST_ARGS) $(PURE:%=./%) ./test/docs ./test/image
	for module in controlplane release; do (cd hack/$$module && $(PLAIN) GOWORK=off $(GO_TEST) -timeout $(UNIT_TIMEOUT) $(TEST_ARGS) ./...); done

# It prints its first seed, and with a failure its seed and what happened.
.PHONY: simulate
simulate: ## Simulate clusters with fresh seeds for SIMULATE.
	SIMULATE="$(SIMULATE)" $(PLAIN) $(GO_TEST) -count=1 -timeout 0 -v -run '^TestFresh$$' $(TEST_ARGS) ./internal/simulation

# Promtool reads rules as they are in the resource's spec.
.PHONY: test-alerts
test-alerts: $(PROMTOOL) ## Run the cases of the alerts, and check that they and the dashboard ask for what is exported.
	@rm -rf bin/alerts && mkdir -p bin/alerts
	@sed -n '/^spec:$$/,$$ s/^  //p' config/prometheus/alerts.yaml >bin/alerts/rules.yaml
	@cp hack/tools/promtool/alerts.yaml bin/alerts/tests.yaml
	$(PROMTOOL) check rules --lint-fatal bin/alerts/rules.yaml
	$(PROMTOOL) test rules bin/alerts/tests.yaml
	cd hack/tools/promtool && $(PLAIN) GOWORK=off $(GO_TEST) -count=1 ./...

# The operator that suites test.
.PHONY: test-manager test-manager-plain
test-manager:
	go build $(RACE) -ldflags='-s -w -X main.clockOffset=CLOCK_OFFSET' -o bin/test-manager .
test-manager-plain:
	$(PLAIN) go build -ldflags='-s -w -X main.clockOffset=CLOCK_OFFSET' -o bin/test-manager-plain .

# A suite runs an API server of its own, and waits for it most of the time: two cores have work
# for three or four.
.PHONY: test-integration
test-integration: test-long test-short ## Run the suites under test/ against a real API server, but those with faults and of the documentation.

# Each process of ginkgo runs an API server, an operator and the specs that nobody has begun yet.
.PHONY: test-long
test-long: controlplane test-manager $(GINKGO) ## Run the longest of these suites, one after the other, each shared among SUITES processes.
	$(IN_SUITE) $(GINKGO) run --vet=off --ldflags='-s -w' --procs=$(SUITES) --keep-going --require-suite --fail-on-pending $(GINKGO_ARGS) $(LONG_SUITES:%=./test/%)

.PHONY: test-short
test-short: MANAGER := test-manager-plain
test-short: controlplane test-manager-plain $(HELM) ## Run the other ones of these suites, three at the same time.
	$(TEST_SUITE) -p 3 -timeout $(INTEGRATION_TIMEOUT) $(SLOW_SUITES:%=./test/%) \
		$(filter-out $(addprefix %/test/,docs faults headlamp image olm/live $(LONG_SUITES) $(SLOW_SUITES)),$(shell go list ./test/...))

# A control plane for each page, and a build from nothing: a few minutes that are
# for who changes pages, config/ or the Dockerfile.
.PHONY: test-docs
test-docs: controlplane test-manager ## Do what README.md and docs/ tell people to do, on a real API server, and build the binary as the image does.
	$(TEST_SUITE) -p 1 -timeout $(INTEGRATION_TIMEOUT) ./test/docs ./test/image

# Nobody who changes code waits for this: OLM takes many minutes to build.
.PHONY: test-olm
test-olm: controlplane test-manager $(OLM) $(RELEASE) $(KUSTOMIZE) ## Install, upgrade and remove the operator through OLM itself.
	OLM_BINARIES="$(CURDIR)/$(OLM)" RELEASE_BINARY="$(CURDIR)/$(RELEASE)" KUSTOMIZE_BINARY="$(CURDIR)/$(KUSTOMIZE)" \
		$(TEST_SUITE) -v -timeout $(INTEGRATION_TIMEOUT) ./test/olm/live

# What npm downloads is by far the largest part of the time.
plugins/headlamp/node_modules/.package-lock.json: plugins/headlamp/package.json plugins/headlamp/package-lock.json plugins/headlamp/.npmrc
	cd plugins/headlamp && npm ci
	@touch $@

.PHONY: test-headlamp-unit
test-headlamp-unit: plugins/headlamp/node_modules/.package-lock.json ## Check the types of the Headlamp plugin, and run its unit tests; needs npm.
	cd plugins/headlamp && npm run tsc && npm test

.PHONY: test-headlamp
test-headlamp: test-headlamp-unit controlplane test-manager ## Test the Headlamp plugin, in Chromium against a real API server, too; needs npm and chromium. SCREENSHOTS: directory for pictures.
	$(if $(SCREENSHOTS),SCREENSHOTS="$(abspath $(SCREENSHOTS))") $(TEST_SUITE) -v -timeout $(INTEGRATION_TIMEOUT) ./test/headlamp

# What happened is told when all went well, too. The suite has time limits of
# its own, which know of FAULTS_DURATION.
.PHONY: test-faults
test-faults: controlplane test-manager ## Kill, pause and cut off replicas and the API server, while clients hammer at the limit.
	FAULTS_SEED="$(FAULTS_SEED)" FAULTS_DURATION="$(FAULTS_DURATION)" $(TEST_SUITE) -timeout 0 -v ./test/faults

##@ Measure

.PHONY: bench
bench: controlplane build ## Measure admission on a real control plane, against no quota, the cheapest webhook and native ResourceQuota. BENCH_JSON: file for the figures.
	$(PLAIN) go build -o bin/bench ./hack/bench
	@bin/bench pods -manager bin/manager -assets "$(ASSETS)" $(BENCH_ARGS)

.PHONY: bench-scale
bench-scale: controlplane build ## Measure counting with 50,000 pods on a real control plane: time, memory, growth. BENCH_JSON: file for the figures.
	$(PLAIN) go build -o bin/bench ./hack/bench
	@bin/bench scale -manager bin/manager -assets "$(ASSETS)" -crds config/crd/bases $(BENCH_ARGS)

##@ Versions

.PHONY: versions
versions: ## Show what everything is pinned to.
	@echo "Operator $(VERSION), Go $$(awk '$$1 == "go" { print $$2 }' go.mod), Kubernetes $$(awk '$$1 == "k8s.io/kubernetes" { print $$2; exit }' go.mod), image of $$(sed -n 's/^ARG GO_IMAGE=//p' Dockerfile)"
	@for module in . hack/tools/*/; do (cd $$module && GOWORK=off go list -f '{{with .Module}}{{.Path}} {{.Version}}{{end}}' tool); done
	@cd hack/controlplane && GOWORK=off go list -m k8s.io/kubernetes go.etcd.io/etcd/server/v3

.PHONY: vulnerabilities
vulnerabilities: bin/tools/govulncheck ## Look for vulnerabilities that VULNDB knows in what is linked.
	bin/tools/govulncheck -db $(VULNDB) ./...

##@ Verify (these only check)

.PHONY: verify
verify: verify-quick lint ## Run all checks below.

.PHONY: verify-quick
verify-quick: verify-licence verify-pure verify-fmt verify-versions verify-mod verify-generated verify-kustomize verify-bundle verify-chart verify-links prose ## Run all checks below but lint.

.PHONY: verify-licence
verify-licence: ## Check that every Go file has the licence header.
	@header="$$(cat hack/boilerplate.go.txt)"; bad=0; \
	for file in $(GO_FILES); do \
		[[ "$$(head -n 5 "$$file")" == *"$$header"* ]] || { echo "$$file: lacks the header of hack/boilerplate.go.txt"; bad=1; }; \
	done; exit $$bad

.PHONY: verify-pure
verify-pure: ## Check that what is tested without the race detector starts no goroutine and shares nothing.
	@bad="$$(grep -nE '"sync"|"sync/atomic"|"testing/synctest"|^\s*go (func|[A-Za-z]\w*(\.\w+)*\()|\.Go\(|t\.Parallel\(' $(PURE:%=%/*.go) || true)"; \
	[[ -z "$$bad" ]] || { echo "no package for PURE in the Makefile:"; echo "$$bad"; exit 1; }

.PHONY: verify-fmt
verify-fmt: ## Check that every Go file is formatted.
	@bad="$$(gofmt -l $(GO_FILES))"; [[ -z "$$bad" ]] || { echo "not formatted; run make fmt:"; echo "$$bad"; exit 1; }

.PHONY: verify-versions
verify-versions: ## Check that modules agree on versions, Kubernetes' included, and that updates are looked for in every module.
	@awk '{ sub(/^require /, "") } /=>/ || $$2 !~ /^v[0-9]/ { next } \
		!($$1 in version) { version[$$1] = $$2; file[$$1] = FILENAME } \
		version[$$1] != $$2 { bad = 1; \
			print FILENAME ": " $$1 " is " $$2 ", but " version[$$1] " in " file[$$1] "; go get the newer one in both, or what needs it is compiled twice" } \
		END { exit bad }' $(ALIKE:%=%/go.mod)
	@bad=0; for module in $(filter-out . hack/tools/%,$(MODULES)); do \
		grep -qx "  - /$$module" .github/dependabot.yml || { echo "$$module: missing in .github/dependabot.yml"; bad=1; }; \
	done; exit $$bad

# Those of goreleaser and syft are left out: more would be downloaded for them than for all others.
.PHONY: verify-mod
verify-mod: ## Check that every go.mod and go.sum is tidy.
	@bad=0; for module in $(filter-out %/goreleaser %/syft,$(MODULES)); do \
		(cd $$module && GOWORK=off go mod tidy -diff) || { echo "$$module: not tidy; run go mod tidy there"; bad=1; }; \
	done; exit $$bad

# What the generators would write goes to a directory aside and is compared. Go passes over directories that begin with
# an underscore, so what else looks at all packages meanwhile, such as lint, doesn't find it half written or gone.
.PHONY: verify-generated
verify-generated: VERIFY_DIR := bin/_verify
verify-generated: $(CONTROLLER_GEN) $(CRD_REF_DOCS) ## Check that generated code and manifests are up to date.
	@rm -rf $(VERIFY_DIR) && mkdir -p $(VERIFY_DIR)/crd $(VERIFY_DIR)/rbac $(VERIFY_DIR)/deepcopy
	@$(call deepcopy-into,$(VERIFY_DIR)/deepcopy)
	@$(call manifests-into,$(VERIFY_DIR)/crd,$(VERIFY_DIR)/rbac)
	@$(call api-docs-into,$(VERIFY_DIR)/api.md)
	@bad=0; \
	diff -u api/v1/zz_generated.deepcopy.go $(VERIFY_DIR)/deepcopy/zz_generated.deepcopy.go || { echo "run make generate"; bad=1; }; \
	diff -ru config/crd/bases $(VERIFY_DIR)/crd || { echo "run make manifests"; bad=1; }; \
	diff -u config/rbac/role.yaml $(VERIFY_DIR)/rbac/role.yaml || { echo "run make manifests"; bad=1; }; \
	diff -u docs/api.md $(VERIFY_DIR)/api.md || { echo "run make api-docs"; bad=1; }; \
	rm -rf $(VERIFY_DIR); exit $$bad

.PHONY: verify-kustomize
verify-kustomize: $(KUSTOMIZE) ## Check that the directories under config/ build.
	@for dir in $(KUSTOMIZATIONS); do $(KUSTOMIZE) build $$dir >/dev/null || { echo "$$dir: does not build"; exit 1; }; done

.PHONY: verify-bundle
verify-bundle: VERIFY_DIR := bin/verify-bundle
verify-bundle: $(KUSTOMIZE) $(RELEASE) ## Check that the OLM bundle is up to date, for the same VERSION, CHANNELS and IMG.
	@rm -rf $(VERIFY_DIR)
	@$(call bundle-into,$(VERIFY_DIR))
	@bad=0; for made in bundle bundle.Dockerfile config/olm/extras.yaml; do \
		diff -ru $$made $(VERIFY_DIR)/$$made || { echo "$$made: run make bundle"; bad=1; }; \
	done; rm -rf $(VERIFY_DIR); exit $$bad

.PHONY: verify-chart
verify-chart: VERIFY_DIR := bin/verify-chart
verify-chart: $(KUSTOMIZE) ## Check that the Helm chart has what is in config/, and VERSION.
	@rm -rf $(VERIFY_DIR)
	@$(call chart-into,$(VERIFY_DIR))
	@bad=0; for made in Chart.yaml files; do \
		diff -ru $(CHART)/$$made $(VERIFY_DIR)/$$made || { echo "$(CHART)/$$made: run make chart"; bad=1; }; \
	done; rm -rf $(VERIFY_DIR); exit $$bad

.PHONY: verify-links
verify-links: ## Check that all links between files of the repository lead somewhere, headings included.
	@$(PLAIN) $(GO_TEST) -run '^TestEveryLinkLeadsSomewhere$$' ./test/docs

# Two clones, in directories of different depths, with different masks and time zones. For one platform unless
# PLATFORM says otherwise: PLATFORM= for all.
.PHONY: verify-release
verify-release: PLATFORM := $(if $(filter file,$(origin PLATFORM)),linux/amd64,$(PLATFORM))
verify-release: $(KUSTOMIZE) $(GORELEASER) $(SYFT) ## Check that two clones of the commit make the same release, byte for byte; PLATFORM= for all platforms.
	@rm -rf bin/verify-release && mkdir -p bin/verify-release/deeper/still
	@make-in() { git clone -q . "$$1" && mkdir -p "$$1/bin/tools" && cp $^ "$$1/bin/tools/" && touch "$$1"/bin/tools/* && \
		$(MAKE) -C "$$1" --no-print-directory release VERSION=0.0.1-rc.1 IMG=registry.example/operator:v0.0.1-rc.1 PLATFORM="$(PLATFORM)" >/dev/null; }; \
	(umask 022; TZ=UTC LC_ALL=C make-in bin/verify-release/one) && \
	(umask 077; TZ=Asia/Kathmandu LC_ALL=C.UTF-8 make-in bin/verify-release/deeper/still/two)
	@diff -r bin/verify-release/one/bin/release bin/verify-release/deeper/still/two/bin/release || { echo "two clones make different files"; exit 1; }
	@rm -rf bin/verify-release

# Only the configuration in this directory counts, and nothing is downloaded. The rules are
# tested first: they must find exactly testdata/findings.txt, and each error must make vale fail.
.PHONY: prose
prose: CHECK := $(VALE) --no-global --output=line
prose: RULES := hack/vale/styles/Plain
prose: $(VALE) ## Check the documentation and the comments in Go code against the rules of hack/vale/styles.
	@diff -u hack/vale/testdata/findings.txt <($(CHECK) --minAlertLevel=suggestion hack/vale/testdata/*.{go,md} | LC_ALL=C sort -t: -k1,1 -k2,2n -k3,3n) || { \
		echo "hack/vale/testdata: the rules of hack/vale/styles find something else"; exit 1; }
	@for rule in $$(grep -l '^level: error$$' $(RULES)/*.yml); do \
		name="Plain.$$(basename "$$rule" .yml)"; \
		! $(CHECK) --filter=".Name == \"$$name\"" hack/vale/testdata/bad.md >/dev/null || { echo "$$rule: finds nothing in hack/vale/testdata/bad.md"; exit 1; }; \
	done
	@$(CHECK) $(PROSE)

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Check the Go code against .golangci.yml.
	@bad=0; for module in $(LINT_MODULES); do \
		(cd $$module && $(PLAIN) GOWORK=off $(CURDIR)/$(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml --timeout 20m ./...) || bad=1; \
	done; exit $$bad
