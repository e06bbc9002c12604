// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { Box, Card, CardContent, TextField, Typography } from '@mui/material';
import { useState } from 'react';
import { group, useFollowed } from '../cluster/headlamp';
import { barsOf, fullness } from '../model/bars';
import { ago, staleOperator } from '../model/staleness';
import type { ClusterQuota, Lease } from '../model/types';
import { selectorOf } from '../model/use';
import { counted, modeWords, sentences, troubles } from '../model/words';
import { Bars, Tag } from '../parts/Bars';
import { Conditions } from '../parts/Lists';
import { Page, paths, To, useClusterName } from '../parts/Page';
import { Note, States, useNow } from '../parts/States';

export const quotasPath = `${group}/clusterresourcequotas`;
const leasesPath = '/apis/coordination.k8s.io/v1/leases';

// OperatorState says so if no replica counts, as far as the reader may see the lease.
export function OperatorState() {
  const leases = useFollowed<Lease>(useClusterName(), leasesPath, 'metadata.name=shared-quota-operator');
  const now = useNow();
  const since = leases.phase === 'live' ? staleOperator(leases.items, now) : null;
  return since === null ? null : (
    <Note severity="warning">
      Stale: no replica of the operator has counted for {ago(since, now)}. The figures are of then.
    </Note>
  );
}

// ModeTags are what differs from the defaults.
export function ModeTags({ quota }: { quota: ClusterQuota }) {
  const { enforcement, preflight } = quota.spec;
  const mode = enforcement?.mode ?? 'Deny';
  const tags = [
    `Mode ${mode}: ${modeWords[mode]}`,
    ...(enforcement?.whenUnavailable ? [`When unavailable: ${enforcement.whenUnavailable}`] : []),
    ...(preflight && preflight !== 'Warn' ? [`Preflight: ${preflight}`] : []),
  ];
  return (
    <Box sx={{ display: 'flex', gap: 1, flexWrap: 'wrap', my: 1 }}>
      {tags.map(tag => (
        <Tag key={tag}>{tag}</Tag>
      ))}
    </Box>
  );
}

function QuotaCard({ quota }: { quota: ClusterQuota }) {
  const { name, generation } = quota.metadata;
  const waiting = quota.status?.waiting;
  return (
    <Card component="article" aria-label={`Quota ${name}`} variant="outlined" sx={{ mb: 2 }}>
      <CardContent>
        <Typography component="h2" variant="h6" sx={{ overflowWrap: 'anywhere' }}>
          <To path={`${paths.quotas}/${name}`}>{name}</To>
        </Typography>
        <Typography sx={{ overflowWrap: 'anywhere' }}>
          {counted(quota.status?.namespaceCount ?? 0, 'namespace')} with {selectorOf(quota)}
          {waiting && `; ${counted(waiting.owners, 'workload')} ${waiting.owners === 1 ? 'waits' : 'wait'} for room`}
        </Typography>
        <ModeTags quota={quota} />
        <Bars bars={barsOf(quota)} quota={name} />
        <Conditions said={troubles(sentences(quota.status?.conditions, generation))} />
      </CardContent>
    </Card>
  );
}

// Quotas lists all quotas, for those who may read them.
export function Quotas() {
  const [wanted, setWanted] = useState('');
  const followed = useFollowed<ClusterQuota>(useClusterName(), quotasPath);
  const shown = followed.items
    .filter(quota => `${quota.metadata.name} ${selectorOf(quota)}`.includes(wanted.trim()))
    .sort((a, b) => fullness(barsOf(b)) - fullness(barsOf(a)) || a.metadata.name.localeCompare(b.metadata.name));
  return (
    <Page title="Shared quotas">
      <OperatorState />
      <States
        of={followed}
        what="ClusterResourceQuotas"
        empty={<>There is no ClusterResourceQuota yet.</>}
        denied={
          <>
            You may not read ClusterResourceQuotas. <To path={paths.views}>My namespaces</To> has what is left for you.
          </>
        }
      >
        <TextField
          size="small"
          label="Name or selector"
          value={wanted}
          onChange={event => setWanted(event.target.value)}
          sx={{ mb: 2, width: '100%', maxWidth: 400 }}
        />
        {shown.length === 0 && <Note severity="info">No quota has “{wanted.trim()}” in its name or selector.</Note>}
        {shown.map(quota => (
          <QuotaCard key={quota.metadata.name} quota={quota} />
        ))}
      </States>
    </Page>
  );
}
