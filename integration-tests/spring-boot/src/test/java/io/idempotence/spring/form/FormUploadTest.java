package io.idempotence.spring.form;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.http.ResponseEntity;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.multipart.MaxUploadSizeExceededException;
import org.springframework.web.multipart.MultipartFile;

/** Uploads from browsers that the container does not parse. The application handles them, as without the starter. */
class FormUploadTest {
    private static ConfigurableApplicationContext application;

    @Configuration(proxyBeanMethods = false)
    static class Files {
        @Bean
        @Order(0)
        SecurityFilterChain files(HttpSecurity security) throws Exception {
            return security.securityMatcher("/files")
                    .csrf(csrf -> csrf.disable())
                    .build();
        }

        @RestController
        static class Uploads {
            @PostMapping("/files")
            String store(@RequestParam MultipartFile file) {
                return file.getSize() + " bytes";
            }
        }

        @RestControllerAdvice
        static class Errors {
            @ExceptionHandler(MaxUploadSizeExceededException.class)
            ResponseEntity<String> tooLarge() {
                return ResponseEntity.status(422).body("send less");
            }
        }
    }

    @BeforeAll
    static void start() {
        application = FormApplication.builder()
                .sources(Files.class)
                .properties("spring.servlet.multipart.max-file-size=1KB")
                .run();
    }

    @AfterAll
    static void stop() {
        application.close();
    }

    private static HttpResponse<String> upload(String more, String file) throws Exception {
        String form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n" + file + "\r\n"
                + more + "--b--\r\n";
        return HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create(FormApplication.site(application) + "/files"))
                                .header("Content-Type", "multipart/form-data; boundary=b")
                                .header("Accept", "text/html")
                                .header("Origin", "null")
                                .POST(HttpRequest.BodyPublishers.ofString(form))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void aFileIsUploaded() throws Exception {
        assertThat(upload("", "abc").body()).isEqualTo("3 bytes");
    }

    /** Tomcat 11 throws it as soon as a parameter is read. */
    @Test
    void theApplicationRespondsToAFileThatIsTooLarge() throws Exception {
        HttpResponse<String> refused = upload("", "a".repeat(2000));

        assertThat(refused.body()).isEqualTo("send less");
        assertThat(refused.statusCode()).isEqualTo(422);
    }

    @Test
    void aFileThatIsTooLargeInAFormWithATokenIsNotStored() throws Exception {
        HttpResponse<String> refused = upload(
                "--b\r\nContent-Disposition: form-data; name=\"_idempotence\"\r\n\r\nforged\r\n", "a".repeat(2000));

        assertThat(refused.body()).isEqualTo("send less");
        assertThat(refused.statusCode()).isEqualTo(422);
    }
}
