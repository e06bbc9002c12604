// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// What of api/v1 the pages read. Quantities are strings, as the API server writes them.

export type Quantities = Record<string, string>;

export interface Meta {
  name: string;
  namespace?: string;
  uid: string;
  generation?: number;
  creationTimestamp?: string;
}

export interface KubeItem {
  metadata: Meta;
}

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  observedGeneration?: number;
  lastTransitionTime?: string;
}

export interface Usage {
  hard?: Quantities;
  used?: Quantities;
}

export type Mode = 'Deny' | 'Warn' | 'Audit';

export interface Requirement {
  key: string;
  operator: string;
  values?: string[];
}

export interface Peak {
  amount: string;
  at: string;
}

export interface SurgingWorkload {
  kind: string;
  namespace: string;
  name: string;
  since: string;
}

// Surge is room above the limit for pods that replace others.
export interface Surge {
  hard: Quantities;
  used?: Quantities;
  // Who holds it. In a view, only those of its namespace.
  workloads?: SurgingWorkload[];
}

export interface ClusterQuota extends KubeItem {
  spec: {
    selector: {
      labels?: { matchLabels?: Record<string, string>; matchExpressions?: Requirement[] } | null;
      annotations?: Record<string, string> | null;
    };
    quota: { hard?: Quantities };
    surge?: { hard?: Quantities };
    preflight?: string;
    enforcement?: { mode?: Mode; whenUnavailable?: string };
  };
  status?: {
    observedGeneration?: number;
    total?: Usage;
    reserved?: Quantities;
    waiting?: { owners: number };
    surge?: Surge;
    peaks?: { resource: string; day?: Peak; week?: Peak; month: Peak; surge?: Peak }[];
    namespaces?: { namespace: string; status: Usage }[] | null;
    namespaceCount?: number;
    selector?: string;
    conditions?: Condition[];
  };
}

export interface WaitingOwner {
  kind: string;
  name: string;
  since: string;
  short?: Quantities;
}

export interface LocalQuota extends KubeItem {
  status?: {
    total?: Usage;
    reserved?: Quantities;
    available?: Quantities;
    surge?: Surge;
    mode?: Mode;
    used?: Quantities;
    waiting?: WaitingOwner[];
    conditions?: Condition[];
    scopeSummary?: string;
  };
}

export interface KubeEvent extends KubeItem {
  reason?: string;
  message?: string;
  count?: number;
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
  eventTime?: string | null;
  series?: { count?: number; lastObservedTime?: string } | null;
  involvedObject: { name?: string };
}

export interface Lease extends KubeItem {
  spec?: { renewTime?: string };
}
