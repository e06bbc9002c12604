// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Condition } from './types';
import { counted, meanings, refusalWords, sentences, troubles } from './words';

function condition(type: string, status: Condition['status'], reason: string, observedGeneration = 2): Condition {
  return { type, status, reason, message: 'm', observedGeneration };
}

// The headings of a page of the documentation, such as ["Ready", "Counted"].
function headings(page: string): [string, string][] {
  const found: [string, string][] = [];
  let type = '';
  for (const line of readFileSync(`${import.meta.dirname}/../../../../docs/${page}`, 'utf8').split('\n')) {
    type = /^## (.*)/.exec(line)?.[1] ?? type;
    const reason = /^### (.*)/.exec(line)?.[1];
    if (reason) {
      found.push([type, reason]);
    }
  }
  return found;
}

describe('conditions in words', () => {
  const documented = headings('conditions.md');

  it.each(Object.keys(meanings))('%s is in the documentation', known => {
    expect(documented.map(([type, reason]) => `${type}/${reason}`)).toContain(known);
  });

  it('say of no request that it is refused if that depends on the mode', () => {
    const said = documented.map(([type, reason]) => sentences([condition(type, 'True', reason)], 2)[0]?.says ?? '');
    const refusing = said.filter(says => /refuse/.test(says));
    expect(refusing.length).toBeGreaterThanOrEqual(5);
    for (const says of refusing) {
      expect(says).toMatch(/if the mode is Deny|The message says/);
    }
  });

  it('come in the order of the documentation, whatever is new last', () => {
    const said = sentences([condition('Newer', 'True', 'Why'), condition('Exceeded', 'False', 'WithinLimits'), condition('Ready', 'True', 'Counted')], 2);
    expect(said.map(({ type, verdict }) => [type, verdict])).toEqual([
      ['Ready', 'good'],
      ['Exceeded', 'good'],
      ['Newer', 'unknown'],
    ]);
    expect(said[2]?.says).toBe('Newer is True: Why.');
    expect(troubles(said)).toHaveLength(1);
  });

  it.each([
    ['Ready', 'False', 'Counting', 'attention'],
    ['Ready', 'False', 'LedgerLost', 'bad'],
    ['Exceeded', 'True', 'UsedAboveHard', 'bad'],
    ['Exceeded', 'Unknown', 'Counting', 'unknown'],
    ['Blocked', 'True', 'WaitingForRoom', 'attention'],
    ['Newer', 'True', 'Why', 'unknown'],
    ['Newer', 'False', 'WhyNot', 'good'],
  ] as const)('%s %s %s is %s', (type, status, reason, verdict) => {
    expect(sentences([condition(type, status, reason)], 2)[0]?.verdict).toBe(verdict);
  });

  it('say if they are about an older spec', () => {
    expect(sentences([condition('Ready', 'True', 'Counted', 1)], 2)[0]?.outdated).toBe(true);
    expect(sentences([condition('Ready', 'True', 'Counted', 2)], 2)[0]?.outdated).toBe(false);
  });
});

describe('a number of things', () => {
  it.each([
    [0, '0 pods'],
    [1, '1 pod'],
    [2, '2 pods'],
  ])('%d is %s', (many, words) => {
    expect(counted(many, 'pod')).toBe(words);
  });
});

describe('refusals in words', () => {
  it('give each cause that the documentation has', () => {
    expect(refusalWords.UsageUnknown).toContain('too many requests');
    expect(refusalWords.WouldExceed).toContain('doesn’t say how much');
  });

  it.each(Object.keys(refusalWords))('%s is in the documentation', reason => {
    expect(readFileSync(`${import.meta.dirname}/../../../../docs/conditions.md`, 'utf8')).toContain(`\n| \`${reason}\` | `);
  });
});
