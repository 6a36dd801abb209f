package io.idempotence.spring.client;

import io.idempotence.client.IdempotenceClientConfig;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;

/** The check of all settings {@code idempotence.client.*}, even if nothing reads them because the client half is switched off. */
final class ClientSettingsCheck implements ApplicationContextInitializer<ConfigurableApplicationContext> {
    @Override
    public void initialize(ConfigurableApplicationContext context) {
        context.addBeanFactoryPostProcessor(
                beans -> EnvironmentSettings.check(context.getEnvironment(), IdempotenceClientConfig.builder()));
    }
}
