//! Every workload.

use crate::{
    Workload, attention, classification, decoding, gaussian, graph, machine, mechanisms,
    regression, training, translation,
};

/// All workloads, ceilings first.
pub fn workloads() -> Vec<Workload> {
    let groups = [
        machine::ceilings(),
        attention::workloads(),
        mechanisms::workloads(),
        decoding::workloads(),
        training::workloads(),
        classification::workloads(),
        translation::workloads(),
        regression::workloads(),
        graph::workloads(),
        gaussian::workloads(),
    ];
    groups.into_iter().flatten().collect()
}
