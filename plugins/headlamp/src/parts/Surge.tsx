// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { Box, Typography } from '@mui/material';
import { isTaken, surgeSentences } from '../model/surge';
import type { Surge as SurgeStatus } from '../model/types';
import { Grid } from './Lists';
import { Time } from './States';

interface SurgeProps {
  surge: SurgeStatus;
  // What it is the surge of. A page may have several.
  of: string;
  // Whether workloads of other namespaces are left out.
  here: boolean;
}

// Surge shows the room above the limits for pods that replace others, and who holds it.
export function Surge({ surge, of, here }: SurgeProps) {
  const workloads = surge.workloads ?? [];
  return (
    <Box component="section" aria-label={`Surge of ${of}`} sx={{ mb: 1 }}>
      {surgeSentences(surge).map(sentence => (
        <Typography key={sentence} variant="body2" sx={{ overflowWrap: 'anywhere' }}>
          {sentence}
        </Typography>
      ))}
      {here && isTaken(surge) && workloads.length === 0 && (
        <Typography variant="body2">No workload of this namespace holds it. Wait until rollouts in others have ended.</Typography>
      )}
      {workloads.length > 0 && (
        <Grid
          label={`Workloads that hold surge: ${of}`}
          columns={['Workload', 'Namespace', 'Holds surge since']}
          rows={workloads.map(workload => ({
            key: `${workload.namespace}/${workload.kind}/${workload.name}`,
            cells: [`${workload.kind}/${workload.name}`, workload.namespace, <Time key="since" at={workload.since} />],
          }))}
        />
      )}
    </Box>
  );
}
