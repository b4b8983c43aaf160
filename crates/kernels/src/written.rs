//! Arrays as they are written: a list, or a list of rows.

pub(crate) mod list {
    use ndarray::Array1;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        x: &Array1<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(x)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Array1<T>, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into())
    }
}

pub(crate) mod rows {
    use ndarray::Array2;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        x: &Array2<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let rows = x.rows().into_iter();
        serializer.collect_seq(rows.map(|row| row.into_iter().collect::<Vec<_>>()))
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Array2<T>, D::Error> {
        let rows = Vec::<Vec<T>>::deserialize(deserializer)?;
        let shape = (rows.len(), rows.first().map_or(0, Vec::len));
        let uneven = rows.iter().position(|row| row.len() != shape.1);
        if let Some(i) = uneven {
            let (got, expected) = (rows[i].len(), shape.1);
            return Err(D::Error::custom(format!(
                "row {i} has {got} entries where the first has {expected}"
            )));
        }
        let all = rows.into_iter().flatten().collect();
        Ok(Array2::from_shape_vec(shape, all).expect("rows of equal length"))
    }
}

/// Reads and writes a kernel as its settings.
macro_rules! written_as_config {
    ($kernel:ident, $config:ident, $($field:ident),*) => {
        impl<T: Real> From<$kernel<T>> for $config<T> {
            fn from(kernel: $kernel<T>) -> Self {
                Self { $($field: kernel.$field),* }
            }
        }

        impl<T: Real> TryFrom<$config<T>> for $kernel<T> {
            type Error = Error;

            fn try_from(config: $config<T>) -> Result<Self, Error> {
                config.build()
            }
        }
    };
}
pub(crate) use written_as_config;
