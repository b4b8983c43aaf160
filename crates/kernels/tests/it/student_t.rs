//! Student's t density, behind the Matérn kernels.

use crate::testing::refused;
use bochner_kernels::StudentTDensity;

#[test]
fn no_degrees_of_freedom_are_refused() {
    assert_eq!(refused(StudentTDensity::new(0, vec![1.0])), "degrees");
    assert_eq!(refused(StudentTDensity::new(3, vec![1.0, -1.0])), "scale");
}
