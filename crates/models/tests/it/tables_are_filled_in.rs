//! A model of tables: the order of rows does not matter, hidden cells are not read, what is masked is as the settings say,
//! training resumes with the same bits, and what does not fit is named.

use crate::by_weights::by_weights;
use crate::common::{assert_gradients, change, mikan, unconditional};
use crate::tiny;
use bochner_attention::{Mikan, Pass};
use bochner_models::datapoints::{
    Between, Block, Cell, Column, Example, Masking, Normalised, Npt, NptConfig, Table, Task,
    Trainer,
};
use bochner_models::training::TrainingConfig;
use bochner_numerics::{Seed, relative_error, standard_normal};
use bochner_ops::Mode;
use dfdx::prelude::*;
use ndarray::{Array2, Array4, ArrayView1, arr2};
use std::num::NonZeroUsize;

const COLUMNS: [Column; 3] = [Column::Number, Column::Class(3), Column::Number];
const SIZES: [usize; 3] = [1, 3, 1];

/// Rows of a number, a class, and a target that is hidden in every third row.
fn table(rows: usize) -> Table {
    let mut stream = Seed::new(3).stream("table");
    let values = Array2::from_shape_fn((rows, 3), |(i, j)| match j {
        1 => (i % 3) as f32,
        _ => standard_normal(&mut stream),
    });
    let is_known = Array2::from_shape_fn((rows, 3), |(i, j)| j < 2 || i % 3 != 2);
    Table::new(COLUMNS.to_vec(), values, is_known).unwrap()
}

fn config() -> NptConfig {
    tiny::npt(&COLUMNS, &[Between::Datapoints, Between::Attributes], None)
}

fn model(config: &NptConfig) -> Npt<f64> {
    Npt::try_new(&Cpu::default(), config, Seed::new(5)).unwrap()
}

/// Moves the parameters of all kernels away from the prior, where the divergence is least.
fn move_kernels(model: &mut Npt<f64>) {
    change(model, |name, values| {
        let by = f64::from(u8::from(name.ends_with("kernel"))) * 0.3;
        values.iter_mut().for_each(|x| *x += by);
    });
}

const PASS: fn() -> Pass = || Pass::Evaluation { seed: Seed::new(2) };

#[test]
fn what_stands_in_hidden_cells_is_not_kept() {
    let table = table(6);
    let mut values = table.values().to_owned();
    values[[2, 2]] = f32::NAN;
    let other = Table::new(COLUMNS.to_vec(), values, table.is_known().to_owned()).unwrap();
    assert_eq!(table, other);
}

type Vectors = Tensor<(usize, usize, usize), f64, Cpu>;

/// A block whose attention has these weights, by its formula.
fn block_by_weights(block: &Block<f64>, weights: &Array4<f64>, vectors: Vectors) -> Vectors {
    let (shape, (batch, _, tokens, _)) = (*vectors.shape(), weights.dim());
    let h = vectors.reshape_like(&(batch, tokens, block.config().token()));
    let memory = match block.config().normalised {
        Normalised::All => block.attention_norm.apply(h.clone()).unwrap(),
        Normalised::Queries => h.clone(),
    };
    let middle = block.residual.apply(h).unwrap() + by_weights(&block.attention, weights, memory);
    let normed = block.feed_forward_norm.apply(middle.clone()).unwrap();
    let output = middle + (block.feed_forward.apply(normed, Mode::Evaluation)).unwrap();
    output.reshape_like(&shape)
}

/// With the weights that are looked at, the formula of the model gives the output of the pass, whatever is drawn.
#[test]
fn the_weights_of_every_block_are_those_of_the_pass() {
    let (rows, columns, width, table) = (5, 3, 4, table(5));
    // The first row of each column's weights, and the first of its values.
    let (rows_of_w, rows_of_y) = ([0, 2, 6], [0, 1, 4]);
    for attention in [None, Some(mikan())] {
        for normalised in [Normalised::All, Normalised::Queries] {
            let model = model(&NptConfig {
                blocks: vec![Between::Datapoints, Between::Attributes, Between::Nothing],
                attention: attention.clone(),
                normalised,
                ..config()
            });
            let seen = model.inspect(&table, PASS()).unwrap();
            let weights: Vec<_> = seen.into_iter().map(|seen| seen.weights).collect();
            let shapes: Vec<_> = weights.iter().map(|weights| weights.dim()).collect();
            assert_eq!(shapes, [(1, 2, 5, 5), (5, 2, 3, 3), (5, 2, 1, 1)]);

            // The last row of a column's weights is for hidden cells.
            let (w, b) = (model.cell_weight.as_vec(), model.cell_bias.as_vec());
            let cells = table.values().into_iter().zip(table.is_known());
            let vectors = cells.enumerate().flat_map(|(at, (&x, known))| {
                let j = at % columns;
                let (row, factor) = match (known, j) {
                    (false, _) => (SIZES[j], 1.0),
                    (true, 1) => (x as usize, 1.0),
                    (true, _) => (0, x),
                };
                let own = w[(rows_of_w[j] + row) * width..]
                    .iter()
                    .zip(&b[j * width..]);
                own.take(width).map(move |(w, b)| f64::from(factor) * w + b)
            });
            let vectors = vectors.collect();
            let mut h = Cpu::default().tensor_from_vec(vectors, (rows, columns, width));
            for (block, weights) in model.blocks.iter().zip(&weights) {
                h = block_by_weights(block, weights, h);
            }
            let (u, c) = (model.value_weight.as_vec(), model.value_bias.as_vec());
            let cells = h.as_vec();
            let want = cells.chunks(width).enumerate().flat_map(|(at, cell)| {
                let j = at % columns;
                let value = |row: usize| {
                    let own = ArrayView1::from(&u[row * width..][..width]);
                    own.dot(&ArrayView1::from(cell)) + c[row]
                };
                let own = rows_of_y[j]..rows_of_y[j] + SIZES[j];
                own.map(value).collect::<Vec<_>>()
            });
            let want: Vec<f64> = want.collect();
            let got = model.apply(&table, NoneTape, PASS()).unwrap();
            let error = relative_error(&got.output.as_vec(), &want);
            assert!(error < 1e-10, "{:?}: {error:e}", model.config());

            let seed = Seed::new(9);
            let other = model.inspect(&table, Pass::Evaluation { seed });
            let is_drawn = other.unwrap()[1].weights != weights[1];
            assert_eq!(is_drawn, attention.is_some());
        }
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let mut model = model(&NptConfig {
        blocks: vec![Between::Attributes],
        attention: Some(unconditional()),
        ..config()
    });
    move_kernels(&mut model);
    let table = table(3);
    assert_gradients(&model, [], |model, []| {
        let filled = model.apply(&table, OwnedTape::default(), PASS()).unwrap();
        filled.output.square().mean() + filled.penalty
    });
}

fn trainer(config: &NptConfig, wanted: Vec<Cell>, masking: Masking) -> Trainer {
    let example = Example::new(table(9), wanted).unwrap();
    let task = Task::new(vec![example.clone(), example], masking).unwrap();
    let training = TrainingConfig::default();
    Trainer::new(config, &training, task, Seed::new(4)).unwrap()
}

fn masking() -> Masking {
    Masking {
        targets: vec![2],
        target_rate: 0.5,
        feature_rate: 0.3,
        feature_weight: 0.8,
        steps: 8,
    }
}

/// Draws of a mechanism for the trainer's predictions come from the seed that the trainer names.
#[test]
fn a_trainer_evaluates_with_its_own_seed() {
    let drawing = NptConfig {
        attention: Some(mikan()),
        ..config()
    };
    let (trainer, table) = (trainer(&drawing, Vec::new(), masking()), table(9));
    let of = |seed| {
        let (model, pass) = (trainer.model(), Pass::Evaluation { seed });
        let predicted = model.predict(&table, 2, pass).unwrap();
        (predicted, model.inspect(&table, pass).unwrap())
    };
    let found = (
        trainer.predict(&table, 2).unwrap(),
        trainer.inspect(&table).unwrap(),
    );
    assert_eq!(found, of(trainer.evaluation_seed()));
    let other = of(Seed::new(9));
    assert!(found.0 != other.0 && found.1 != other.1);
}

#[test]
fn a_penalty_is_that_of_a_table() {
    // Ten times the rows have a penalty of the same size, not ten times as large, where each row is an example.
    let config = NptConfig {
        blocks: vec![Between::Attributes],
        attention: Some(mikan()),
        ..config()
    };
    let mut model = model(&config);
    move_kernels(&mut model);
    let penalty = |rows| {
        model
            .apply(&table(rows), NoneTape, PASS())
            .unwrap()
            .penalty
            .array()
    };
    let (few, many) = (penalty(3), penalty(30));
    assert!(few > 0.0 && (many / few - 1.0).abs() < 0.5, "{few} {many}");
}

/// A step of three tables shares a table's divergence out over all three of them.
#[test]
fn divergences_of_accumulated_tables_are_summed() {
    let mikan = Mikan {
        points: 4,
        beta: 1e3,
        ..Default::default()
    };
    let config = NptConfig {
        attention: Some(mikan.into()),
        ..config()
    };
    let example = |rows| Example::new(table(rows), vec![([2, 2], 0.5)]).unwrap();
    let task = Task::new([6, 7, 8].map(example).to_vec(), Masking::NONE).unwrap();
    let training = TrainingConfig {
        accumulate: NonZeroUsize::new(3).unwrap(),
        ..TrainingConfig::default()
    };
    let mut trainer = Trainer::new(&config, &training, task, Seed::new(4)).unwrap();
    let report = trainer.epoch().unwrap();
    assert_eq!(trainer.steps_done(), 1);
    // The mean over the tables, which are the examples.
    let parts = report.error + report.penalty;
    assert!(report.penalty > report.error, "{report:?}");
    assert!((report.loss - parts).abs() < 1e-5 * parts, "{report:?}");
}

#[test]
fn misfits_are_named() {
    let values = || arr2(&[[0.5_f32, 1.0], [f32::NAN, 2.0]]);
    let table = |values: Array2<f32>, known: [[bool; 2]; 2]| {
        let columns = vec![Column::Number, Column::Class(3)];
        Table::new(columns, values, arr2(&known))
    };
    let hidden = [[true, true], [false, true]];
    assert!(table(values(), hidden).is_ok());
    for (known, class, message) in [
        ([[true; 2]; 2], 2.0, "a cell of column 0"),
        (hidden, 3.0, "a cell of column 1"),
        (hidden, 1.5, "a cell of column 1"),
        (
            [[false, true], [false, true]],
            2.0,
            "known cells of column 0",
        ),
    ] {
        let mut values = values();
        values[[1, 1]] = class;
        let error = table(values, known).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let table = table(values(), hidden).unwrap();
    for (wanted, message) in [
        (vec![([2, 0], 1.0)], "rows of wanted cells"),
        (vec![([1, 2], 1.0)], "columns of wanted cells"),
        (vec![([1, 1], 1.0)], "wanted cell of row 1 and column 1"),
        (vec![([1, 0], f32::INFINITY)], "a cell of column 0"),
        (vec![([1, 0], 1.0), ([1, 0], 2.0)], "each once"),
    ] {
        let error = Example::new(table.clone(), wanted).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let example = Example::new(table, Vec::new()).unwrap();
    let nothing = Task::new(vec![example.clone()], Masking::NONE).unwrap_err();
    assert!(nothing.to_string().contains("example"), "{nothing}");
    // Features that are masked and count nothing are nothing to learn from either; with a weight they are.
    let of_features = |feature_weight| {
        let masking = Masking {
            feature_rate: 0.3,
            feature_weight,
            ..Masking::NONE
        };
        Task::new(vec![example.clone()], masking)
    };
    let nothing = of_features(0.0).unwrap_err().to_string();
    assert!(nothing.contains("that count"), "{nothing}");
    assert!(of_features(0.1).is_ok());
    let far = Masking {
        targets: vec![2],
        ..masking()
    };
    let error = Task::new(vec![example], far).unwrap_err().to_string();
    assert!(error.contains("targets"), "{error}");
}
