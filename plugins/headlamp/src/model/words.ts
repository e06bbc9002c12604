// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import type { Condition, Mode } from './types';

export type Verdict = 'good' | 'attention' | 'bad' | 'unknown';

export interface Sentence {
  type: string;
  verdict: Verdict;
  // What holds, in words, and what to do next. docs/conditions.md has the same.
  says: string;
  next?: string;
  // The condition's own message.
  message: string;
  reason: string;
  since?: string;
  // Whether it describes a spec that has been replaced since.
  outdated: boolean;
}

interface Meaning {
  says: string;
  next?: string;
}

const wait = 'Wait some seconds. If it lasts, look at ResourceUnavailable and at the log of the leader.';
const correct = 'Correct the spec.';

// type/reason -> what it means. Any other condition is shown by its own message.
export const meanings: Record<string, Meaning> = {
  'Ready/Counted': { says: 'Everything that the quota limits is counted.' },
  'Ready/Counting': {
    says:
      'A count is under way. Until it is done, requests for what isn’t counted are refused if the mode is Deny, and admitted otherwise.',
    next: wait,
  },
  'Ready/LedgerUnavailable': {
    says: 'The operator can’t read or write the quota’s ledger. The message says whether requests are refused or admitted unchecked.',
    next: 'Mend what the message names.',
  },
  'Ready/NotSettled': {
    says: 'The quota’s ledger doesn’t take the count. Deletions make no room, and requests may be refused if the mode is Deny.',
    next: 'Mend what the message names.',
  },
  'Ready/LedgerLost': {
    // The time in the message is when that happened.
    says: 'Somebody deleted or edited the quota’s ledger. For a minute, requests are refused if the mode is Deny.',
    next: 'Wait. If nobody restored a backup, find the client that wrote quotaledgers in the audit log, and remove its right.',
  },
  'Ready/InvalidSpec': { says: 'The spec can’t be enforced.', next: correct },
  'Enforced/WebhookConfigured': { says: 'The API server asks about every request that the quota limits.' },
  'Enforced/WebhookPending': {
    says: 'The API server doesn’t ask about every request yet. Objects may pass unchecked; they are counted.',
    next: 'Wait a moment. If it lasts, read the log of the leader.',
  },
  'Enforced/WebhookEdited': {
    says: 'Somebody edited the webhook configuration. Objects may pass unchecked; they are counted.',
    next: 'Wait. If it happens again, find the client in the audit log, and keep it from changing the configuration shared-quota.',
  },
  'Enforced/ProbeFailed': {
    says: 'The operator can’t find out whether the API server asks it.',
    next: 'Mend what the message names.',
  },
  'Enforced/InvalidSpec': { says: 'The spec can’t be enforced. The message says whether requests are refused.', next: correct },
  'Exceeded/WithinLimits': { says: 'No more is used than the quota allows.' },
  'Exceeded/UsedAboveHard': {
    says: 'More is used than the quota allows. Nothing is removed. Requests for more are refused if the mode is Deny.',
    next: 'Delete unneeded objects, or raise spec.quota.hard.',
  },
  'Exceeded/Surging': {
    says: 'More is used than the limit, because pods replace others and have taken surge. Nothing else that takes any is admitted until used is below the limit.',
    next: 'Wait until the rollouts have ended, and correct or undo one that doesn’t.',
  },
  'Exceeded/AdmittedAboveHard': {
    says: 'More is used than the quota allows, because the mode admits it.',
    next: 'Delete objects or raise the limit before you set the mode to Deny.',
  },
  'Exceeded/AdmittedWhileUnavailable': {
    says: 'More is used than the quota allows, because the operator couldn’t decide for a time.',
    next: 'Find out why it didn’t answer. Then delete unneeded objects, or raise spec.quota.hard.',
  },
  'Exceeded/Counting': { says: 'Not everything is counted yet.', next: wait },
  'Exceeded/InvalidSpec': { says: 'Nothing is counted for an invalid spec.', next: correct },
  'ResourceUnavailable/AllAvailable': { says: 'Every resource that the quota names can be counted.' },
  'ResourceUnavailable/NotServed': {
    says: 'The cluster doesn’t serve a resource that the quota names.',
    next: 'Install what defines it, or remove its name from spec.quota.hard.',
  },
  'ResourceUnavailable/NotWatchable': {
    says: 'The operator can’t list or watch a resource that the quota names.',
    next: 'Mend what the message says.',
  },
  'ResourceUnavailable/NotLimitable': {
    says: 'Kubernetes keeps no quota on a resource that the quota names.',
    next: 'Remove the name from spec.quota.hard, or correct it.',
  },
  'ProtectedSelected/NoneProtected': { says: 'The quota selects no protected namespace.' },
  'ProtectedSelected/ProtectedNamespaces': {
    says: 'The quota selects namespaces that are never limited. What they use counts.',
    next: 'Exclude them by the selector, unless you want this.',
  },
  'Reconciling/Progressing': { says: 'The spec isn’t fully in force yet, and the operator works on that.', next: 'Wait some seconds.' },
  'Reconciling/ProgressingWithRetry': {
    says: 'The spec isn’t fully in force. The operator tries again and again.',
    next: 'Mend what the message names.',
  },
  'Stalled/InvalidSpec': { says: 'The spec can’t come into force.', next: correct },
  'Stalled/NotLimitable': {
    says: 'A part of the spec can’t come into force: Kubernetes keeps no quota on a resource that it names.',
    next: 'Remove the name from spec.quota.hard, or correct it.',
  },
  'Blocked/WaitingForRoom': {
    says: 'Workloads of this namespace wait for room.',
    next: 'Delete unneeded objects in any namespace that shares the quota, or ask an administrator for a higher limit.',
  },
  'Blocked/NoneWaiting': { says: 'No workload of this namespace waits for room.' },
};

// The status that each condition has if all is well.
const wanted: Record<string, Condition['status']> = {
  Ready: 'True',
  Enforced: 'True',
  Exceeded: 'False',
  ResourceUnavailable: 'False',
  ProtectedSelected: 'False',
  Reconciling: 'False',
  Stalled: 'False',
  Blocked: 'False',
};
const order = Object.keys(wanted);

// verdictOf takes it that a condition which is newer than the plugin reports a trouble if it isn't False.
function verdictOf(condition: Condition): Verdict {
  if (wanted[condition.type] === undefined && condition.status === 'False') {
    return 'good';
  }
  if (condition.status === 'Unknown' || wanted[condition.type] === undefined) {
    return 'unknown';
  }
  if (condition.status === wanted[condition.type]) {
    return 'good';
  }
  const passing = ['Counting', 'Progressing', 'WebhookPending', 'AdmittedAboveHard', 'Surging', 'ProtectedNamespaces', 'WaitingForRoom'];
  return passing.includes(condition.reason) ? 'attention' : 'bad';
}

// sentences says conditions in words, in the order of docs/conditions.md. generation is that of the object.
export function sentences(conditions: Condition[] | undefined, generation: number | undefined): Sentence[] {
  return [...(conditions ?? [])]
    .sort((a, b) => rank(a.type) - rank(b.type) || a.type.localeCompare(b.type))
    .map(condition => ({
      type: condition.type,
      verdict: verdictOf(condition),
      ...(meanings[`${condition.type}/${condition.reason}`] ?? { says: `${condition.type} is ${condition.status}: ${condition.reason}.` }),
      message: condition.message,
      reason: condition.reason,
      since: condition.lastTransitionTime,
      outdated: (condition.observedGeneration ?? generation ?? 0) < (generation ?? 0),
    }));
}

function rank(type: string): number {
  const at = order.indexOf(type);
  return at < 0 ? order.length : at;
}

// troubles are the sentences that somebody should read.
export function troubles(said: Sentence[]): Sentence[] {
  return said.filter(sentence => sentence.verdict !== 'good');
}

export const modeWords: Record<Mode, string> = {
  Deny: 'refuses what doesn’t fit',
  Warn: 'admits what doesn’t fit, and warns',
  Audit: 'admits what doesn’t fit, and notes it in the audit log',
};

// What became of a request, by the reason of its event. docs/conditions.md has the same.
export const refusalWords: Record<string, string> = {
  QuotaExceeded: 'It didn’t fit, and was refused.',
  WouldExceed: 'It didn’t fit, or doesn’t say how much it asks for, and was admitted because of the mode.',
  RequestIncomplete: 'It was refused because it doesn’t say how much it asks for.',
  UsageUnknown: 'It was refused because what is used wasn’t known, or because too many requests were under way.',
  TooMuchInDoubt: 'It was refused because too much is held for requests that seem to have failed.',
  QuotaShort: 'It was applied, and not all of its objects fitted.',
};

// counted says how many there are of a thing.
export function counted(many: number, thing: string): string {
  return `${many} ${thing}${many === 1 ? '' : 's'}`;
}
