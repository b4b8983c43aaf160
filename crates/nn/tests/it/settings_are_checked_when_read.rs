//! Settings read back as they were written, and refuse what their layer refuses.

use bochner_nn::FeedForwardConfig;
use bochner_ops::Activation;

#[test]
fn of_every_type() {
    let config = FeedForwardConfig {
        dropout: 0.3,
        hidden: Activation::Gelu,
        activation: Activation::Relu,
    };
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(
        serde_json::from_str::<FeedForwardConfig>(&text).unwrap(),
        config
    );
    let error = serde_json::from_str::<FeedForwardConfig>(r#"{"dropout": 2.0}"#);
    assert!(error.unwrap_err().to_string().starts_with("`dropout` is 2"));
}
